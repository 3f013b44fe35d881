import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaDeserializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * A program on the JVM beside Millrace, on one Kafka and one registry: reads the records of each topic "-seed", which
 * Millrace's serdes wrote, writes the same values to "-java" with the serializers of Java, reads what Millrace makes of those
 * in "-node", and holds it against the values. Lines of its input: the descriptors of Protobuf, then a format, a topic and a
 * count each, then an empty one.
 */
public final class KafkaInterchange {
  /** One format: what it reads is what it writes. */
  private interface Codec {
    Object read(String topic, byte[] bytes) throws Exception;

    byte[] write(String topic, Object value) throws Exception;
  }

  private static final long longestMs = 240_000;

  public static void main(String[] args) throws Exception {
    String bootstrap = args[0];
    String registry = args[1];
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    Descriptor message = lastFileOf(Base64.getDecoder().decode(in.readLine())).getMessageTypes().get(0);
    List<String[]> topics = new ArrayList<>();
    for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) topics.add(line.split(" "));
    Map<String, Codec> codecs = new HashMap<>();
    codecs.put("avro", new Library(registry, new AvroKafkaSerializer<>(), new AvroKafkaDeserializer<>(), false));
    codecs.put("json", new Library(registry, new JsonSchemaKafkaSerializer<>(), new JsonSchemaKafkaDeserializer<>(), true));
    codecs.put("protobuf", new ConfluentProtobuf(registry, message));
    Map<String, Object> client = Map.of("bootstrap.servers", bootstrap);
    try (KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(client, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(client, new ByteArraySerializer(), new ByteArraySerializer())) {
      Map<String, List<Object>> written = new HashMap<>();
      for (String[] each : topics) {
        Codec codec = codecs.get(each[0]);
        List<Object> values = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : all(consumer, each[1] + "-seed", Integer.parseInt(each[2]))) {
          Object value = codec.read(record.topic(), record.value());
          values.add(value);
          String topic = each[1] + "-java";
          producer.send(new ProducerRecord<>(topic, 0, record.key(), codec.write(topic, value))).get();
        }
        written.put(each[1], values);
      }
      System.out.println("written");
      int records = 0;
      for (String[] each : topics) {
        List<Object> values = written.get(each[1]);
        int at = 0;
        for (ConsumerRecord<byte[], byte[]> record : all(consumer, each[1] + "-node", values.size())) {
          Object value = codecs.get(each[0]).read(record.topic(), record.value());
          if (!value.equals(values.get(at)))
            throw new IllegalStateException(each[1] + ": " + values.get(at) + " came back as " + value);
          at++;
          records++;
        }
      }
      System.out.println("same " + records);
    }
    System.exit(0);
  }

  private static List<ConsumerRecord<byte[], byte[]>> all(KafkaConsumer<byte[], byte[]> consumer, String topic, int count) {
    TopicPartition partition = new TopicPartition(topic, 0);
    consumer.assign(List.of(partition));
    consumer.seekToBeginning(List.of(partition));
    List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
    long until = System.currentTimeMillis() + longestMs;
    while (found.size() < count) {
      if (System.currentTimeMillis() > until) throw new IllegalStateException(topic + " has " + found.size() + " of " + count);
      for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) found.add(record);
    }
    return found;
  }

  /** The serializers of a library, set to Confluent's wire format. */
  private static final class Library implements Codec {
    private final Serializer<Object> serializer;
    private final Deserializer<Object> deserializer;

    @SuppressWarnings("unchecked")
    Library(String registry, Serializer<?> serializer, Deserializer<?> deserializer, boolean isJson) {
      this.serializer = (Serializer<Object>) serializer;
      this.deserializer = (Deserializer<Object>) deserializer;
      Map<String, Object> settings = new HashMap<>();
      settings.put("apicurio.registry.url", registry + "/apis/registry/v2");
      settings.put("apicurio.registry.as-confluent", true);
      settings.put("apicurio.registry.use-id", "contentId");
      settings.put("apicurio.registry.headers.enabled", false);
      settings.put("apicurio.registry.artifact-resolver-strategy", "io.apicurio.registry.serde.strategy.TopicIdStrategy");
      settings.put("apicurio.registry.find-latest", true);
      if (isJson) settings.put("apicurio.registry.deserializer.value.return-class", JsonNode.class.getName());
      this.serializer.configure(settings, false);
      this.deserializer.configure(settings, false);
    }

    public Object read(String topic, byte[] bytes) {
      return deserializer.deserialize(topic, bytes);
    }

    public byte[] write(String topic, Object value) {
      return serializer.serialize(topic, value);
    }
  }

  /** No library of Maven Central writes Protobuf in Confluent's format: it is written here, with Google's messages. */
  private static final class ConfluentProtobuf implements Codec {
    private static final ObjectMapper json = new ObjectMapper();
    private final HttpClient http = HttpClient.newHttpClient();
    private final Map<String, Integer> ids = new HashMap<>();
    private final String registry;
    private final Descriptor message;

    ConfluentProtobuf(String registry, Descriptor message) {
      this.registry = registry;
      this.message = message;
    }

    public Object read(String topic, byte[] bytes) throws Exception {
      ByteBuffer record = ByteBuffer.wrap(bytes);
      if (record.get() != 0) throw new IllegalArgumentException("no zero byte in front");
      record.getInt();
      if (record.get() != 0) throw new IllegalArgumentException("not the first message of its file");
      byte[] payload = new byte[record.remaining()];
      record.get(payload);
      return DynamicMessage.parseFrom(message, payload);
    }

    public byte[] write(String topic, Object value) throws Exception {
      Integer id = ids.get(topic);
      if (id == null) {
        String path = "/apis/ccompat/v7/subjects/" + topic + "-value/versions/latest";
        HttpRequest request = HttpRequest.newBuilder(URI.create(registry + path)).build();
        id = json.readTree(http.send(request, HttpResponse.BodyHandlers.ofString()).body()).get("id").asInt();
        ids.put(topic, id);
      }
      byte[] payload = ((DynamicMessage) value).toByteArray();
      return ByteBuffer.allocate(6 + payload.length).put((byte) 0).putInt(id).put((byte) 0).put(payload).array();
    }
  }

  private static FileDescriptor lastFileOf(byte[] set) throws Exception {
    List<FileDescriptor> files = new ArrayList<>();
    for (FileDescriptorProto file : FileDescriptorSet.parseFrom(set).getFileList())
      files.add(FileDescriptor.buildFrom(file, files.toArray(new FileDescriptor[0])));
    return files.isEmpty() ? null : Collections.unmodifiableList(files).get(files.size() - 1);
  }
}
