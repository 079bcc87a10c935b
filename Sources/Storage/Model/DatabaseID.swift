package import Base

/// The id of a database: twelve random bytes, written when a worker first needs it.
///
/// Workers of two databases can keep their spill files in one folder. By the id a worker tells its own files from the
/// others. Without it, the tokens of user 42 of one database could become those of user 42 of the other.
package struct DatabaseID: Hashable, Sendable, CustomStringConvertible {
    private static let byteCount = 12
    private static let prefix = "db_"

    /// `db_` and twenty-four lower-case hexadecimal digits.
    package let description: String

    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let bytes = Hexadecimal.decode(text.dropFirst(Self.prefix.utf8.count)),
            bytes.count == Self.byteCount
        else { return nil }
        description = text
    }

    package static func random(from source: any RandomSource) -> DatabaseID {
        let bytes = [UInt8](bigEndian: source.nextBits()) + [UInt8](bigEndian: source.nextBits())
        return DatabaseID(bytes: Array(bytes.prefix(byteCount)))
    }

    private init(bytes: [UInt8]) { description = Self.prefix + Hexadecimal.encode(bytes) }
}

extension Store {
    private var idNote: String { "database_id" }

    /// Returns the id of this database, which gets one from `random` if it has none yet.
    package func databaseID(from random: any RandomSource) async throws -> DatabaseID {
        while true {
            let former = try await note(idNote)
            if let former, let id = DatabaseID(former) { return id }
            let id = DatabaseID.random(from: random)
            if try await replaceNote(idNote, from: former, with: id.description) { return id }
        }
    }

    /// Gives the id of a database to its copy, which takes its place.
    func takeOverID(of source: any Store) async throws {
        guard let id = try await source.note(idNote) else { return }
        while true {
            let former = try await note(idNote)
            if former == id { return }
            if try await replaceNote(idNote, from: former, with: id) { return }
        }
    }
}
