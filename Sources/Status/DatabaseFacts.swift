/// A database as it looks from outside.
package struct DatabaseFacts: Sendable {
    /// The path of its file, or the address of its server.
    package var location: String
    package var bytes: Int64 = 0
    /// The version of its tables, or `nil` if it was not read.
    package var schema: Int?
    /// The free bytes on its disk, or `nil` for a server.
    package var freeSpace: Int64?

    package init(location: String) {
        self.location = location
    }
}
