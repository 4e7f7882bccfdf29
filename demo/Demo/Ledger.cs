// Accounts behind one lock that several threads want: what they hold always adds up to the same sum.
namespace Demo;

sealed class Ledger
{
    readonly Lock gate = new();
    readonly long[] accounts;
    long moves;

    public Ledger(int accounts)
    {
        this.accounts = new long[accounts];
        Array.Fill(this.accounts, 1_000);
    }

    public long Moves => moves;

    public void MoveMoney(int threads, int moves)
    {
        var clerks = new Thread[threads];
        for (int i = 0; i < threads; i++)
        {
            var random = new Random(i);
            clerks[i] = new Thread(() => MoveOften(random, moves)) { Name = "clerk " + (i + 1) };
            clerks[i].Start();
        }
        foreach (Thread clerk in clerks) clerk.Join();
    }

    void MoveOften(Random random, int count)
    {
        for (int i = 0; i < count; i++) Move(random.Next(accounts.Length), random.Next(accounts.Length), random.Next(100));
    }

    void Move(int from, int to, long amount)
    {
        lock (gate)
        {
            accounts[from] -= amount;
            accounts[to] += amount;
            moves++;
        }
    }

    public long Sum()
    {
        lock (gate) return accounts.Sum();
    }
}
