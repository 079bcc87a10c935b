/// One SQL statement with a name, which errors show and under which a connection keeps it prepared.
struct SQLiteQuery: Sendable {
    let name: String
    let text: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
    }
}
