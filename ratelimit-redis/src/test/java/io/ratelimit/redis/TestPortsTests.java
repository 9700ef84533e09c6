package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TestPortsTests {

    private static final int PROCESSES = 30;
    private static final int PORTS = 90;

    /** Class loaders, each with its own static fields, take the place of processes. */
    @Test
    void noTwoProcessesGetTheSamePort() throws Exception {
        List<URLClassLoader> processes = new ArrayList<>();
        Set<Integer> ports = new HashSet<>();
        for (int i = 0; i < PROCESSES; i++) {
            processes.add(process());
            ports.addAll(portsOf(processes.get(i)));
        }
        assertThat(ports).hasSize(PROCESSES * PORTS);
        for (URLClassLoader process : processes) {
            process.close();
        }
    }

    private static URLClassLoader process() {
        URL classes = TestPorts.class.getProtectionDomain().getCodeSource().getLocation();
        return new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader());
    }

    private static Set<Integer> portsOf(ClassLoader process) throws Exception {
        var next = process.loadClass(TestPorts.class.getName()).getDeclaredMethod("next");
        next.setAccessible(true);
        Set<Integer> ports = new HashSet<>();
        for (int i = 0; i < PORTS; i++) {
            ports.add((Integer) next.invoke(null));
        }
        return ports;
    }
}
