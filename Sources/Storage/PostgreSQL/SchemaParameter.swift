import Crypto

/// A database's URL whose parameter `schema` was read and removed, because libpq refuses parameters that it does not
/// know.
///
///     postgres://worker@db.example/grants?schema=grants_17&sslmode=verify-full
struct SchemaParameter {
    private static let keyword = "schema="

    let schema: SchemaName
    let urlForPostgres: Secret

    init(of url: Secret) throws(StoreError) {
        let text = url.reveal()
        guard let mark = Self.startOfParameters(in: text) else {
            schema = .standard
            urlForPostgres = url
            return
        }
        let parameters = text[mark...].dropFirst().split(separator: "&", omittingEmptySubsequences: false)
        let names = parameters.filter { $0.hasPrefix(Self.keyword) }.map { $0.dropFirst(Self.keyword.count) }
        guard names.count <= 1 else { throw DatabaseAddress.refusal("it names \(names.count) schemas") }
        guard let name = names.first else {
            schema = .standard
            urlForPostgres = url
            return
        }
        guard let schema = SchemaName(String(name)) else {
            throw DatabaseAddress.refusal("its schema (not shown) is not \(SchemaName.rule)")
        }
        self.schema = schema
        let rest = parameters.filter { !$0.hasPrefix(Self.keyword) }.joined(separator: "&")
        urlForPostgres = Secret(String(text[..<mark]) + (rest.isEmpty ? "" : "?" + rest))
    }

    /// Returns the question mark before the parameters of a URL.
    ///
    /// As in libpq, all before an @ is user and password, if no slash comes before it. A password can contain a
    /// question mark.
    private static func startOfParameters(in text: String) -> String.Index? {
        guard let scheme = ["postgres://", "postgresql://"].first(where: text.hasPrefix) else { return nil }
        var rest = text.dropFirst(scheme.count)
        if let end = rest.firstIndex(where: { $0 == "@" || $0 == "/" }), rest[end] == "@" { rest = rest[end...] }
        return rest.firstIndex(of: "?")
    }
}
