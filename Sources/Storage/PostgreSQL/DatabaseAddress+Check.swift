import Crypto

/// Checks for passwords that libpq misreads without an error: a character in them that is not percent-encoded ends the
/// password early, and the rest becomes a port, a host or the database's name.
///
/// The error shows no part of such a URL.
extension DatabaseAddress {
    static func check(_ options: [String: Secret]) throws(StoreError) {
        for keyword in ["host", "hostaddr", "port", "dbname"] {
            guard options[keyword]?.reveal().contains("@") != true else {
                throw refusal("there is an @ in what reads as host, port or database (not shown)")
            }
        }
        // Several hosts have several ports; one that is left out has the default.
        let ports = options["port"]?.reveal().split(separator: ",") ?? []
        for port in ports where !(1...65_535).contains(Int(port) ?? 0) {
            throw refusal("a port is not a number from 1 to 65535 (not shown)")
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

    /// Returns a message of libpq up to its first quotation mark.
    ///
    /// libpq quotes the part of the URL that it cannot read, which may be a password and may itself contain quotation
    /// marks.
    static func untilQuote(_ message: String) -> String {
        guard let quote = message.firstIndex(of: "\"") else { return message.oneLine }
        return message[..<quote] + "\"…\""
    }
}
