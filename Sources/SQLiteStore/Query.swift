/// One SQL statement under a name: errors tell the name, and a connection keeps it prepared under it.
struct Query: Sendable {
    let name: String
    let text: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
    }
}
