// A text file as it comes from outside: every two-hundredth line is broken, and parsing it throws.
using System.Globalization;
using System.Text;

namespace Demo;

static class Importer
{
    public static string WriteFile(ReadOnlySpan<Order> orders)
    {
        var text = new StringBuilder();
        foreach (Order order in orders)
        {
            string total = order.Id % 200 == 0 ? "n/a" : order.Total().ToString(CultureInfo.InvariantCulture);
            text.Append(order.Id).Append(';').Append(order.Customer).Append(';').AppendLine(total);
        }
        return text.ToString();
    }

    public static (int Good, int Bad) ReadAll(string file)
    {
        int good = 0, bad = 0;
        foreach (string line in file.Split('\n', StringSplitOptions.RemoveEmptyEntries))
        {
            try
            {
                good += ReadLine(line) >= 0 ? 1 : 0;
            }
            catch (FormatException)
            {
                bad++;
            }
        }
        return (good, bad);
    }

    static decimal ReadLine(string line)
    {
        string[] fields = line.TrimEnd().Split(';');
        return ParseAmount(fields[2]);
    }

    static decimal ParseAmount(string text) => decimal.Parse(text, CultureInfo.InvariantCulture);
}
