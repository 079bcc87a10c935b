/// One SQL statement under a name, which errors tell.
struct Query: Sendable {
    let name: String
    let text: String
    /// What a server keeps it prepared under.
    ///
    /// It holds a hash of the text: behind a pooler another version of this program may have left a statement of the same
    /// purpose and another text in the session that this one is lent.
    let preparedName: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
        // FNV-1a, 64 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv): the same in every process.
        let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
        preparedName = "refresh_worker_\(String(hash, radix: 16))"
    }
}

/// Statements that go to the server together and are answered in one journey.
struct Batch {
    struct Entry {
        let query: Query
        let parameters: Parameters
    }

    private(set) var entries: [Entry] = []

    /// Adds a statement and answers its place among the answers.
    @discardableResult
    mutating func add(_ query: Query, bind: (inout Parameters) -> Void = { _ in }) -> Int {
        var parameters = Parameters()
        bind(&parameters)
        entries.append(Entry(query: query, parameters: parameters))
        return entries.count - 1
    }
}
