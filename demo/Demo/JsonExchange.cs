// Orders to JSON and back.
using System.Text.Json;

namespace Demo;

static class JsonExchange
{
    static readonly JsonSerializerOptions Options = new() { PropertyNamingPolicy = JsonNamingPolicy.CamelCase };

    public static long RoundTrip(ReadOnlySpan<Order> orders)
    {
        byte[] json = Write(orders.ToArray());
        Order[] read = Read(json);
        if (read.Length != orders.Length || read[^1].Total() != orders[^1].Total())
            throw new InvalidOperationException("the orders have changed on their way through JSON");
        return json.Length;
    }

    static byte[] Write(Order[] orders) => JsonSerializer.SerializeToUtf8Bytes(orders, Options);
    static Order[] Read(byte[] json) => JsonSerializer.Deserialize<Order[]>(json, Options)!;
}
