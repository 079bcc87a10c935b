private import CPostgres

/// The libpq that this process runs with.
package enum PostgresLibrary {
    /// The version, from a number such as 150014 (https://www.postgresql.org/docs/current/libpq-misc.html).
    package static var version: String {
        let number = PQlibVersion()
        return "\(number / 10_000).\(number % 10_000)"
    }
}
