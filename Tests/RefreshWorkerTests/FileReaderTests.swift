import Base
import Foundation
import Glibc
import Testing

@testable import RefreshWorker

@Suite("Reading a configuration file", .timeLimit(.minutes(10)))
struct FileReaderTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "file-reader-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func makePipe() throws -> String {
        let path = folder.appending(path: "pipe").path
        #expect(mkfifo(path, 0o600) == 0)
        return path
    }

    @Test("does not wait forever for a pipe without a writer")
    func silentPipe() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try makePipe()
        let failure = #expect(throws: InputError.self) {
            try FileReader.system(timeout: .milliseconds(10)).read(path)
        }
        #expect(failure?.message.contains("nothing was written") == true)
    }

    @Test("reads a pipe that a command writes to")
    func writtenPipe() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try makePipe()
        Thread.detachNewThread {
            // Opening waits for the reader.
            let writer = open(path, O_WRONLY)
            _ = write(writer, "KEY=value\n", 10)
            close(writer)
        }
        #expect(try FileReader.system(timeout: .seconds(20)).read(path) == Array("KEY=value\n".utf8))
    }

    @Test("reads a regular file, and /dev/null as an empty one")
    func files() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "file")
        try Data(repeating: 0x78, count: 100_000).write(to: file)
        #expect(try FileReader.system.read(file.path).count == 100_000)
        #expect(try FileReader.system.read("/dev/null").isEmpty)
        #expect(throws: InputError.self) { try FileReader.system.read(folder.path) }
    }
}
