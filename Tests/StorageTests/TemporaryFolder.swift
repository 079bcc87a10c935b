import Foundation
import TestSupport

/// A folder that is deleted after the test, like ``TemporaryDatabaseFolder`` in memory if the machine has room there.
struct TemporaryFolder: Sendable {
    let root: String

    /// `onDisk` is `true` for tests of syncs, and for servers, whose sockets need short paths.
    static func with<Result>(
        onDisk: Bool = false,
        _ body: (TemporaryFolder) async throws -> Result
    ) async throws -> Result {
        let folder = try TemporaryFolder(onDisk: onDisk)
        let result: Result
        do {
            result = try await body(folder)
        } catch {
            try folder.remove()
            throw error
        }
        try folder.remove()
        return result
    }

    private init(onDisk: Bool) throws {
        let place = onDisk ? FileManager.default.temporaryDirectory.path : TemporaryDatabaseFolder.root
        root = "\(place)/store-tests-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    }

    func path(_ name: String) -> String { root + "/" + name }

    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: root).sorted() }

    func mode(of name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path(name))[.posixPermissions] as? Int
    }

    func bytes(of name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path(name))) }

    /// Returns the names of the files that contain `bytes`.
    func names(holding bytes: [UInt8]) throws -> [String] {
        try names().filter { try self.bytes(of: $0).range(of: Data(bytes)) != nil }
    }

    /// Replaces one file with another.
    func replace(_ name: String, with other: String) throws {
        try FileManager.default.removeItem(atPath: path(name))
        try FileManager.default.moveItem(atPath: path(other), toPath: path(name))
    }

    func rename(_ name: String, to other: String) throws {
        try FileManager.default.moveItem(atPath: path(name), toPath: path(other))
    }

    private func remove() throws { try FileManager.default.removeItem(atPath: root) }
}
