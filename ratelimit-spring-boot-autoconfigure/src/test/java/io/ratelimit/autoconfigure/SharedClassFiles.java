package io.ratelimit.autoconfigure;

import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.AnnotationConfigUtils;
import org.springframework.core.io.DefaultResourceLoader;
import org.springframework.core.type.classreading.CachingMetadataReaderFactory;
import org.springframework.core.type.classreading.MetadataReaderFactory;

/**
 * Lets the applications of one JVM share the class files of auto-configurations that Spring has read. Each start would
 * read some hundred files again, a tenth of its time. Applications with another class loader are left alone.
 */
final class SharedClassFiles implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    private static final ClassLoader CLASS_LOADER = SharedClassFiles.class.getClassLoader();

    private static final MetadataReaderFactory SHARED =
            new CachingMetadataReaderFactory(new DefaultResourceLoader(CLASS_LOADER)) {
                /** Keeps what is cached at the end of a start. */
                @Override
                public void clearCache() {}
            };

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        if (context.getClassLoader() == CLASS_LOADER) {
            context.addBeanFactoryPostProcessor((BeanDefinitionRegistryPostProcessor) SharedClassFiles::share);
        }
    }

    private static void share(BeanDefinitionRegistry registry) {
        registry.getBeanDefinition(AnnotationConfigUtils.CONFIGURATION_ANNOTATION_PROCESSOR_BEAN_NAME)
                .getPropertyValues()
                .add("metadataReaderFactory", SHARED);
    }
}
