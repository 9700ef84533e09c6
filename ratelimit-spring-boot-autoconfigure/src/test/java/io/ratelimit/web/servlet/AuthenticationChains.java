package io.ratelimit.web.servlet;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.security.authentication.AuthenticationManager;
import org.springframework.security.authentication.AuthenticationProvider;
import org.springframework.security.authentication.BadCredentialsException;
import org.springframework.security.authentication.ProviderManager;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.authentication.dao.DaoAuthenticationProvider;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.authentication.configuration.AuthenticationConfiguration;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.AuthenticationEntryPointFailureHandler;
import org.springframework.security.web.authentication.AuthenticationFilter;
import org.springframework.security.web.authentication.HttpStatusEntryPoint;
import org.springframework.security.web.authentication.UsernamePasswordAuthenticationFilter;
import org.springframework.security.web.authentication.preauth.x509.X509AuthenticationFilter;
import org.springframework.security.web.context.HttpSessionSecurityContextRepository;
import org.springframework.web.filter.OncePerRequestFilter;

/** One filter chain of Spring Security for each way to authenticate, below a path of its own. */
@Configuration(proxyBeanMethods = false)
class AuthenticationChains {

    @Bean
    UserDetailsService users() {
        return new BasicSecurity().users();
    }

    private static HttpSecurity plain(HttpSecurity http, String chain) {
        return http.securityMatcher(chain + "/**")
                .csrf(AbstractHttpConfigurer::disable)
                .exceptionHandling(failures ->
                        failures.authenticationEntryPoint(new HttpStatusEntryPoint(HttpStatus.UNAUTHORIZED)))
                .authorizeHttpRequests(
                        requests -> requests.requestMatchers("/*/open", "/*/enter", "/*/check", "/*/failed")
                                .permitAll()
                                .requestMatchers("/*/admin")
                                .hasRole("ADMIN")
                                .anyRequest()
                                .authenticated());
    }

    private static HttpSecurity form(HttpSecurity http, String chain) {
        return plain(http, chain)
                .httpBasic(Customizer.withDefaults())
                .formLogin(form -> form.loginPage(chain + "/login"));
    }

    @Bean
    @Order(1)
    SecurityFilterChain form(HttpSecurity http) {
        return form(http, "/form").rememberMe(remember -> remember.key("a key")).build();
    }

    /** The login leaves nothing in the attributes of the request. */
    @Bean
    @Order(2)
    SecurityFilterChain stored(HttpSecurity http) {
        return form(http, "/stored")
                .securityContext(
                        context -> context.securityContextRepository(new HttpSessionSecurityContextRepository()))
                .build();
    }

    @Bean
    @Order(3)
    SecurityFilterChain forwarded(HttpSecurity http) {
        return form(http, "/forwarded")
                .formLogin(form -> form.failureForwardUrl("/forwarded/failed"))
                .build();
    }

    @Bean
    @Order(4)
    SecurityFilterChain basic(HttpSecurity http) {
        return plain(http, "/basic").httpBasic(Customizer.withDefaults()).build();
    }

    /** A resource server: an authentication filter, and a manager that publishes no events. */
    @Bean
    @Order(5)
    SecurityFilterChain bearer(HttpSecurity http) {
        AuthenticationFilter filter = new AuthenticationFilter(
                (AuthenticationManager) new ProviderManager(new Tokens()), Tokens::credentials);
        filter.setSuccessHandler((request, response, authentication) -> {});
        filter.setFailureHandler(
                new AuthenticationEntryPointFailureHandler(new HttpStatusEntryPoint(HttpStatus.UNAUTHORIZED)));
        return plain(http, "/bearer")
                .addFilterBefore(filter, UsernamePasswordAuthenticationFilter.class)
                .build();
    }

    /** A filter as many applications write it: a wrong token counts as no token. */
    @Bean
    @Order(6)
    SecurityFilterChain own(HttpSecurity http) {
        return plain(http, "/own")
                .addFilterBefore(new OwnFilter(), UsernamePasswordAuthenticationFilter.class)
                .build();
    }

    /** Trusts a header, like a client certificate, in front of a form login. */
    @Bean
    @Order(7)
    SecurityFilterChain mixed(HttpSecurity http) {
        return plain(http, "/mixed")
                .x509(x509 -> x509.x509PrincipalExtractor(certificate -> "")
                        .x509AuthenticationFilter(new HeaderFilter(manager())))
                .formLogin(form -> form.loginPage("/mixed/login"))
                .build();
    }

    private AuthenticationManager manager() {
        return authentication -> {
            authentication.setAuthenticated(true);
            return authentication;
        };
    }

    /** A manager that isn't registered with Spring Security, so that no event is published. */
    @Bean
    @Order(8)
    SecurityFilterChain remembered(HttpSecurity http, UserDetailsService users) {
        return plain(http, "/remembered")
                .authenticationManager(new ProviderManager(new DaoAuthenticationProvider(users)))
                .httpBasic(Customizer.withDefaults())
                .build();
    }

    @Bean
    AuthenticationManager authenticationManager(AuthenticationConfiguration configuration) {
        return configuration.getAuthenticationManager();
    }

    static final class HeaderFilter extends X509AuthenticationFilter {

        HeaderFilter(AuthenticationManager manager) {
            setAuthenticationManager(manager);
        }

        @Override
        protected Object getPreAuthenticatedPrincipal(HttpServletRequest request) {
            return request.getHeader("X-Client");
        }

        @Override
        protected Object getPreAuthenticatedCredentials(HttpServletRequest request) {
            return "a certificate";
        }
    }

    static final class OwnFilter extends OncePerRequestFilter {

        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            if ("Bearer alice".equals(request.getHeader(HttpHeaders.AUTHORIZATION))) {
                SecurityContextHolder.setContext(
                        new SecurityContextImpl(UsernamePasswordAuthenticationToken.authenticated(
                                "alice", null, AuthorityUtils.NO_AUTHORITIES)));
            }
            chain.doFilter(request, response);
        }
    }

    static final class Tokens implements AuthenticationProvider {

        static UsernamePasswordAuthenticationToken credentials(HttpServletRequest request) {
            String header = request.getHeader(HttpHeaders.AUTHORIZATION);
            return header == null
                    ? null
                    : UsernamePasswordAuthenticationToken.unauthenticated("token", header.substring(7));
        }

        @Override
        public Authentication authenticate(Authentication token) {
            if (!"alice".equals(token.getCredentials())) {
                throw new BadCredentialsException("wrong");
            }
            return UsernamePasswordAuthenticationToken.authenticated("alice", null, AuthorityUtils.NO_AUTHORITIES);
        }

        @Override
        public boolean supports(Class<?> type) {
            return true;
        }
    }
}
