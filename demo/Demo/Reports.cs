// LINQ over records, and the report's text.
using System.Text;

namespace Demo;

static class Reports
{
    public sealed record CountryRow(Country Country, int Orders, decimal Turnover, string TopArticle);
    public sealed record CustomerRow(string Customer, decimal Turnover, DateOnly LastOrder);

    public static List<CountryRow> TurnoverByCountry(Order[] orders) =>
        (from order in orders
         group order by order.Country into country
         orderby country.Key
         select new CountryRow(country.Key, country.Count(), country.Sum(order => order.Total()),
                               MostSold(country))).ToList();

    static string MostSold(IEnumerable<Order> orders) =>
        orders.SelectMany(order => order.Lines)
              .GroupBy(line => line.Article)
              .MaxBy(article => article.Sum(line => line.Quantity))!.Key;

    public static List<CustomerRow> BestCustomers(Order[] orders, int count) =>
        orders.GroupBy(order => order.Customer)
              .Select(group => new CustomerRow(group.Key, group.Sum(order => order.Total()),
                                               group.Max(order => order.Day)))
              .OrderByDescending(row => row.Turnover)
              .ThenBy(row => row.Customer)
              .Take(count)
              .ToList();

    public static string Print(List<CountryRow> countries, List<CustomerRow> customers)
    {
        var text = new StringBuilder();
        foreach (CountryRow row in countries)
        {
            text.Append(row.Country).Append(": ").Append(row.Orders).Append(" orders, ")
                .AppendFormat("{0:N2}", row.Turnover).Append(", mostly ").AppendLine(row.TopArticle);
        }
        foreach (CustomerRow row in customers)
        {
            text.AppendLine($"{row.Customer,-14} {row.Turnover,12:N2} {row.LastOrder:yyyy-MM-dd}");
        }
        return text.ToString();
    }
}
