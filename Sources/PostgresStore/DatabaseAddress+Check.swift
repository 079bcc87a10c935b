import Secrets
import Store

/// What libpq reads without complaint, though it was meant as a password: a sign in it that is not percent-encoded ends it
/// early, and the rest becomes a port, a host or the database's name. Of such a URL nothing is told.
extension DatabaseAddress {
    static func check(_ options: [String: Secret]) throws(StoreError) {
        for keyword in ["host", "hostaddr", "port", "dbname"] {
            guard options[keyword]?.reveal().contains("@") != true else {
                throw refusal("there is an @ in what reads as host, port or database (not shown)")
            }
        }
        // Several hosts have several ports, of which one that is left out is the usual one.
        let ports = options["port"]?.reveal().split(separator: ",") ?? []
        for port in ports where !(1...65_535).contains(Int(port) ?? 0) {
            throw refusal("a port is no number from 1 to 65535 (not shown)")
        }
    }

    static func refusal(_ cause: String) -> StoreError {
        StoreError(
            .cannotOpen,
            "The database's URL cannot be read: \(cause). It looks like postgres://user@host:5432/database, or "
                + "postgres:///database?host=/run/postgresql for a socket; a password with @, :, / or % in it is "
                + "percent-encoded."
        )
    }

    /// A message of libpq's as far as it tells nothing of the URL: it quotes the part that it cannot read, which may be a
    /// password, and have quotes in it.
    static func untilQuote(_ message: String) -> String {
        guard let quote = message.firstIndex(of: "\"") else { return message.oneLine }
        return message[..<quote] + "\"…\""
    }
}
