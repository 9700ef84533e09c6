package io.ratelimit.sample;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

/**
 * The users alice, carol and bob (on the pro plan), an admin with access to the limits, and the customers 1 to 40 of the
 * home page's scene. Each password equals the user name. The home page and the greeting need no login.
 */
@Configuration(proxyBeanMethods = false)
class SecurityConfiguration {

    private static final int CUSTOMERS = 40;
    private static final String[] HOME_PAGE = {"/", "/index.html", "/shop.css", "/shop.js", "/favicon.ico"};

    @Bean
    SecurityFilterChain security(HttpSecurity http) {
        return http.authorizeHttpRequests(requests -> requests.requestMatchers(HOME_PAGE)
                        .permitAll()
                        .requestMatchers("/error", "/api/hello", "/actuator/health")
                        .permitAll()
                        .requestMatchers("/actuator/**", "/api/plans/**")
                        .hasRole("ADMIN")
                        .anyRequest()
                        .authenticated())
                .httpBasic(Customizer.withDefaults())
                .csrf(AbstractHttpConfigurer::disable)
                .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
                .build();
    }

    /** Only looks users up: the manager itself would replace their passwords by bcrypt, at 70 ms a request. */
    @Bean
    UserDetailsService users() {
        InMemoryUserDetailsManager users = new InMemoryUserDetailsManager(
                User.withUsername("alice").password("{noop}alice").roles("USER").build(),
                User.withUsername("carol").password("{noop}carol").roles("USER").build(),
                User.withUsername("bob")
                        .password("{noop}bob")
                        .roles("USER", "PRO")
                        .build(),
                User.withUsername("admin")
                        .password("{noop}admin")
                        .roles("ADMIN")
                        .build());
        for (int i = 1; i <= CUSTOMERS; i++) {
            String name = "customer" + i;
            users.createUser(User.withUsername(name)
                    .password("{noop}" + name)
                    .roles("USER")
                    .build());
        }
        return users::loadUserByUsername;
    }
}
