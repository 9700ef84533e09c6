package io.ratelimit.web.servlet;

import java.util.Locale;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.web.SecurityFilterChain;

/** A configuration of Spring Security in which each request needs a password, and the users have roles. */
@Configuration(proxyBeanMethods = false)
public class RoleUsers {

    @Bean
    public SecurityFilterChain security(HttpSecurity http) {
        return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                .httpBasic(Customizer.withDefaults())
                .build();
    }

    /** Each name is a user, and the name contains the roles. */
    @Bean
    public UserDetailsService users() {
        return name -> User.withUsername(name)
                .password("{noop}" + name)
                .roles(name.toUpperCase(Locale.ROOT).split("-AND-"))
                .build();
    }
}
