import java.io.FileInputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

import kafka.consumer.Blacklist;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.KafkaStream;
import kafka.consumer.TopicFilter;
import kafka.consumer.Whitelist;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * A member of a group by Kafka's high-level consumer, which prints where each message is that it
 * reads, and leaves when its input ends.
 *
 * <p>Its argument is a file of settings of Kafka, and of two more: {@code pattern} is static,
 * white_list or black_list, and {@code streams} is TOPIC:STREAMS,... or EXPRESSION:STREAMS.
 */
public final class GroupMember {
    private GroupMember() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        String pattern = (String) settings.remove("pattern");
        String streams = (String) settings.remove("streams");
        ConsumerConnector connector =
                Consumer.createJavaConsumerConnector(new ConsumerConfig(settings));
        for (KafkaStream<byte[], byte[]> stream : join(connector, pattern, streams)) {
            Thread reader = new Thread(() -> stream.forEach(GroupMember::print));
            reader.setDaemon(true);
            reader.start();
        }
        System.out.println("joined");
        while (System.in.read() >= 0) {
            // Nothing is read but the end.
        }
        connector.shutdown();
        System.out.println("left");
        System.exit(0);
    }

    private static void print(MessageAndMetadata<byte[], byte[]> message) {
        System.out.println(
                "read " + message.topic() + " " + message.partition() + " " + message.offset());
    }

    private static Iterable<KafkaStream<byte[], byte[]>> join(
            ConsumerConnector connector, String pattern, String streams) {
        if (!pattern.equals("static")) {
            int colon = streams.lastIndexOf(':');
            String expression = streams.substring(0, colon);
            TopicFilter filter =
                    pattern.equals("white_list")
                            ? new Whitelist(expression)
                            : new Blacklist(expression);
            int count = Integer.parseInt(streams.substring(colon + 1));
            return connector.createMessageStreamsByFilter(filter, count);
        }
        Map<String, Integer> wanted = new HashMap<>();
        for (String each : streams.split(",")) {
            String[] parts = each.split(":");
            wanted.put(parts[0], Integer.parseInt(parts[1]));
        }
        return connector.createMessageStreams(wanted).values().stream()
                        .flatMap(java.util.List::stream)
                ::iterator;
    }
}
