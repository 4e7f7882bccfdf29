// The data: orders with lines, made up from a seed so that every run sees the same ones.
namespace Demo;

enum Country { Austria, Brazil, Canada, Denmark, Egypt, France, Germany, India }

sealed record Line(string Article, int Quantity, decimal Price);

sealed record Order(int Id, string Customer, Country Country, DateOnly Day, Line[] Lines)
{
    public decimal Total()
    {
        decimal total = 0;
        foreach (Line line in Lines) total += line.Quantity * line.Price;
        return total;
    }
}

static class OrderBook
{
    static readonly string[] Articles =
        ["anvil", "bucket", "candle", "drum", "easel", "funnel", "globe", "hammer", "ink", "jar"];

    public static Order[] Fill(int count, int seed)
    {
        var random = new Random(seed);
        var orders = new Order[count];
        for (int i = 0; i < count; i++) orders[i] = MakeOrder(i, random);
        return orders;
    }

    static Order MakeOrder(int id, Random random)
    {
        var lines = new Line[random.Next(1, 6)];
        for (int i = 0; i < lines.Length; i++)
        {
            lines[i] = new Line(Articles[random.Next(Articles.Length)], random.Next(1, 10),
                                random.Next(100, 9999) / 100m);
        }
        return new Order(id, "customer " + random.Next(500), (Country)random.Next(8),
                         new DateOnly(2026, 1, 1).AddDays(random.Next(365)), lines);
    }
}
