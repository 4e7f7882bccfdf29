// One thread's round of chores: LINQ reports, sorting in three ways, JSON out and in again, and a file
// of which some lines are broken.
namespace Demo;

sealed class BackOffice(Order[] orders)
{
    int rounds, imported, rejected;
    long jsonBytes, reportCharacters;
    decimal turnover;

    public void WorkUntil(Closing closing)
    {
        var random = new Random(2);
        do
        {
            turnover = WriteReport();
            SortEverything(random);
            jsonBytes += JsonExchange.RoundTrip(orders.AsSpan(0, 2_000));
            (int good, int bad) = Importer.ReadAll(Importer.WriteFile(orders.AsSpan(0, 4_000)));
            imported += good;
            rejected += bad;
            rounds++;
        } while (!closing.IsNow);
    }

    decimal WriteReport()
    {
        var countries = Reports.TurnoverByCountry(orders);
        var best = Reports.BestCustomers(orders, 20);
        reportCharacters += Reports.Print(countries, best).Length;
        return countries.Sum(row => row.Turnover);
    }

    void SortEverything(Random random)
    {
        Order[] shuffled = [.. orders];
        random.Shuffle(shuffled);
        Sorting.QuickSort(shuffled, (a, b) => a.Total().CompareTo(b.Total()));
        Sorting.RequireSorted(shuffled, (a, b) => a.Total().CompareTo(b.Total()));

        double[] numbers = new double[20_000];
        for (int i = 0; i < numbers.Length; i++) numbers[i] = random.NextDouble();
        double[] copy = [.. numbers];
        Native.QSort(numbers);
        Array.Sort(copy);
        if (!numbers.AsSpan().SequenceEqual(copy)) throw new InvalidOperationException("qsort and Array.Sort differ");
    }

    public string Summary() =>
        $"Back office:  {rounds} rounds; turnover {turnover:N2}; {reportCharacters / 1024} KiB of reports, " +
        $"{jsonBytes >> 20} MiB of JSON written and read; {imported} lines imported, {rejected} rejected.";
}
