// An asynchronous pipeline: orders are taken, priced by several workers at once, and booked, through
// bounded channels; beside it a clerk with threads and a lock moves money between accounts.
using System.Threading.Channels;

namespace Demo;

sealed class FrontOffice
{
    sealed record PricedOrder(int Id, decimal Net, decimal Tax);

    readonly Ledger ledger = new(accounts: 64);
    int rounds, taken;
    decimal booked;

    public void WorkUntil(Closing closing)
    {
        do
        {
            booked += SellAsync(3_000, seed: rounds).GetAwaiter().GetResult();
            ledger.MoveMoney(threads: 2, moves: 40_000);
            rounds++;
        } while (!closing.IsNow);
    }

    async Task<decimal> SellAsync(int count, int seed)
    {
        var incoming = Channel.CreateBounded<Order>(64);
        var priced = Channel.CreateBounded<PricedOrder>(64);
        Task taking = TakeOrdersAsync(incoming.Writer, count, seed);
        Task[] pricing = [.. Enumerable.Range(0, 3).Select(_ => PriceOrdersAsync(incoming.Reader, priced.Writer))];
        Task<decimal> booking = BookOrdersAsync(priced.Reader);
        await taking;
        await Task.WhenAll(pricing);
        priced.Writer.Complete();
        return await booking;
    }

    async Task TakeOrdersAsync(ChannelWriter<Order> writer, int count, int seed)
    {
        foreach (Order order in OrderBook.Fill(count, seed))
        {
            await writer.WriteAsync(order);
            taken++;
        }
        writer.Complete();
    }

    static async Task PriceOrdersAsync(ChannelReader<Order> reader, ChannelWriter<PricedOrder> writer)
    {
        await foreach (Order order in reader.ReadAllAsync()) await writer.WriteAsync(Price(order));
    }

    static PricedOrder Price(Order order)
    {
        decimal net = order.Total() * (1 - Discount(order));
        return new PricedOrder(order.Id, net, Math.Round(net * 0.19m, 2));
    }

    // What loyal customers pay less: a number that takes some arithmetic to find.
    static decimal Discount(Order order)
    {
        ulong state = (ulong)order.Id * 0x9E3779B97F4A7C15 + (ulong)order.Customer.Length;
        for (int i = 0; i < 2_000; i++) state = (state ^ (state >> 29)) * 0xBF58476D1CE4E5B9;
        return state % 10 / 100m;
    }

    static async Task<decimal> BookOrdersAsync(ChannelReader<PricedOrder> reader)
    {
        decimal sum = 0;
        await foreach (PricedOrder order in reader.ReadAllAsync()) sum += order.Net + order.Tax;
        return sum;
    }

    public string Summary() =>
        $"Front office: {rounds} rounds; {taken} orders taken, {booked:N2} booked; {ledger.Moves} movements " +
        $"between accounts, which add up to {ledger.Sum()}.";
}
