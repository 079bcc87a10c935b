import Foundation
import Glibc
import Testing

@testable import Base

@Suite("The owner of a file", .enabled(if: geteuid() == 0, "only root can give a file away"))
struct FileOwnerTests {
    /// The owners of the folder and of the file, and the advice to a process of root.
    @Test(
        "decides what to run: a file in the service's folder becomes the service's, and nobody else's is taken",
        arguments: [
            (0, 0, "run: chmod 600 PATH"),
            (4321, 0, "run as root: chown -h 4321: PATH && chmod 600 PATH"),
            (4321, 4321, "run this as 4321, or as root: chmod 600 PATH"),
            (0, 4321, "run as root: chown -h root: PATH && chmod 600 PATH"),
        ] as [(UInt32, UInt32, String)]
    )
    func advice(folder: UInt32, file: UInt32, expected: String) throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "owner-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: place) }
        let path = "\(place)/services.json"
        try Data().write(to: URL(filePath: path))
        try #require(chmod(path, 0o644) == 0 && chown(path, file, file) == 0 && chown(place, folder, folder) == 0)
        let owner = try #require(FileOwner(path))
        #expect(owner.advice() == expected.replacing("PATH", with: path))
        #expect(owner.description == "it belongs to \(file == 0 ? "root" : "4321") (mode 644)")
        #expect(FileOwner.advice(toProtect: path) == owner.advice())
        #expect(FileOwner("\(path).missing")?.name == nil)
        #expect(FileOwner.advice(toProtect: "\(path).missing") == "run: chmod 600 \(path).missing")
    }

    @Test("gives no command that would change what a link leads to, and quotes odd names")
    func links() throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "owner-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: place) }
        let target = "\(place)/a; id #"
        try Data().write(to: URL(filePath: target))
        try #require(chown(place, 4321, 4321) == 0)
        #expect(FileOwner(target)?.advice().hasSuffix("chmod 600 '\(target)'") == true)
        for (name, make) in [("link", symlink), ("name", link)] {
            try #require(make(target, "\(place)/\(name)") == 0)
            let advice = try #require(FileOwner("\(place)/\(name)")?.advice())
            #expect(!advice.contains("chown") && !advice.contains("chmod"))
        }
    }
}
