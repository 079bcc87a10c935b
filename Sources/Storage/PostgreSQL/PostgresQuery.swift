/// One SQL statement with a name, which errors show.
struct PostgresQuery: Sendable {
    let name: String
    let text: String
    /// The name under which a server keeps it prepared.
    ///
    /// It contains a hash of the text: behind a pooler another version of this program may have left a statement with
    /// the same purpose and another text in the same session.
    let preparedName: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
        // FNV-1a, 64 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv): the same in every process.
        let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
        preparedName = "refresh_worker_\(String(hash, radix: 16))"
    }
}
