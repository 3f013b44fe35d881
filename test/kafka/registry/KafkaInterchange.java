import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaDeserializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import io.apicurio.registry.utils.protobuf.schema.FileDescriptorUtils;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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
 * in "-node", and holds it against the values. Lines of its input: a format, a topic and a count each, then an empty one. It
 * tells what it takes messages of Protobuf for, of which bytes alone do not say it.
 */
public final class KafkaInterchange {
  /** One format: what it reads is what it writes. */
  private interface Codec {
    Object read(String topic, byte[] bytes) throws Exception;

    byte[] write(String topic, Object value) throws Exception;

    /** What Java takes the value for; null: its bytes say it themselves. */
    default String shown(Object value) throws Exception {
      return null;
    }
  }

  private static final long longestMs = 240_000;

  public static void main(String[] args) throws Exception {
    String bootstrap = args[0];
    String registry = args[1];
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    List<String[]> topics = new ArrayList<>();
    for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) topics.add(line.split(" "));
    Map<String, Codec> codecs = new HashMap<>();
    codecs.put("avro", new Library(registry, new AvroKafkaSerializer<>(), new AvroKafkaDeserializer<>(), false));
    codecs.put("json", new Library(registry, new JsonSchemaKafkaSerializer<>(), new JsonSchemaKafkaDeserializer<>(), true));
    codecs.put("protobuf", new ConfluentProtobuf(registry));
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
          String shown = codec.shown(value);
          if (shown != null) System.out.println("value " + each[1] + " " + base64(shown));
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

  private static String base64(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
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

  /**
   * No library of Maven Central writes Protobuf in Confluent's format: it is written here, with Google's messages. Their types
   * are those of the text that the registry holds, as a program has them that knows nothing else.
   */
  private static final class ConfluentProtobuf implements Codec {
    private static final ObjectMapper json = new ObjectMapper();
    private final HttpClient http = HttpClient.newHttpClient();
    private final Map<String, Integer> ids = new HashMap<>();
    private final Map<Integer, FileDescriptor> files = new HashMap<>();
    private final Map<String, FileDescriptor> filesByText = new HashMap<>();
    private final String registry;

    ConfluentProtobuf(String registry) {
      this.registry = registry;
    }

    public Object read(String topic, byte[] bytes) throws Exception {
      ByteBuffer record = ByteBuffer.wrap(bytes);
      if (record.get() != 0) throw new IllegalArgumentException("no zero byte in front");
      FileDescriptor file = fileOf(record.getInt());
      int count = zigzag(record);
      Descriptor message = file.getMessageTypes().get(count == 0 ? 0 : zigzag(record));
      for (int i = 1; i < count; i++) message = message.getNestedTypes().get(zigzag(record));
      byte[] payload = new byte[record.remaining()];
      record.get(payload);
      return DynamicMessage.parseFrom(message, payload);
    }

    public byte[] write(String topic, Object value) throws Exception {
      Integer id = ids.get(topic);
      if (id == null) {
        id = get("/subjects/" + topic + "-value/versions/latest").get("id").asInt();
        ids.put(topic, id);
      }
      DynamicMessage message = (DynamicMessage) value;
      LinkedList<Integer> indexes = new LinkedList<>();
      for (Descriptor at = message.getDescriptorForType(); at != null; at = at.getContainingType())
        indexes.addFirst(at.getIndex());
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      out.write(ByteBuffer.allocate(5).put((byte) 0).putInt(id).array());
      // The first message of a file has the short form.
      if (indexes.equals(List.of(0))) zigzag(out, 0);
      else {
        zigzag(out, indexes.size());
        for (int index : indexes) zigzag(out, index);
      }
      out.write(message.toByteArray());
      return out.toByteArray();
    }

    public String shown(Object value) throws Exception {
      DynamicMessage message = (DynamicMessage) value;
      String text = JsonFormat.printer().omittingInsignificantWhitespace().print(message);
      return message.getDescriptorForType().getFullName() + " " + text;
    }

    private FileDescriptor fileOf(int id) throws Exception {
      FileDescriptor file = files.get(id);
      if (file == null) {
        JsonNode schema = get("/schemas/ids/" + id);
        String text = schema.get("schema").asText();
        file = filesByText.get(text);
        if (file == null) {
          Map<String, String> imports = new HashMap<>();
          collect(schema, imports);
          file = FileDescriptorUtils.protoFileToFileDescriptor(text, "file.proto", packageOf(text), imports, Map.of());
          filesByText.put(text, file);
        }
        files.put(id, file);
      }
      return file;
    }

    private void collect(JsonNode schema, Map<String, String> into) throws Exception {
      if (!schema.has("references")) return;
      for (JsonNode reference : schema.get("references")) {
        JsonNode found =
            get("/subjects/" + reference.get("subject").asText().replace("/", "%2F") + "/versions/" + reference.get("version"));
        into.put(reference.get("name").asText(), found.get("schema").asText());
        collect(found, into);
      }
    }

    private static Optional<String> packageOf(String text) {
      Matcher found = Pattern.compile("package ([\\w.]+);").matcher(text);
      return found.find() ? Optional.of(found.group(1)) : Optional.empty();
    }

    private JsonNode get(String path) throws Exception {
      HttpRequest request = HttpRequest.newBuilder(URI.create(registry + "/apis/ccompat/v7" + path)).build();
      HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
      if (response.statusCode() != 200) throw new IllegalStateException(path + " gives " + response.body());
      return json.readTree(response.body());
    }

    private static int zigzag(ByteBuffer bytes) {
      int value = 0;
      for (int shift = 0; ; shift += 7) {
        byte next = bytes.get();
        value |= (next & 127) << shift;
        if (next >= 0) return (value >>> 1) ^ -(value & 1);
      }
    }

    private static void zigzag(ByteArrayOutputStream out, int value) {
      int left = (value << 1) ^ (value >> 31);
      for (; (left & ~127) != 0; left >>>= 7) out.write((left & 127) | 128);
      out.write(left);
    }
  }
}
