import Glibc
import HTTPClient
import TestSupport
import Testing

@Suite("Signals of the client's thread")
struct ThreadSignalTests {
    // With these signals blocked, a crash would end the process without the runtime's report. The kernel shows the mask
    // (proc(5), `SigBlk`).
    @Test("The thread receives the signals of a crash, and not those that are sent to the process")
    func mask() async throws {
        let server = try ScriptedServer { _ in answer("{}") }
        defer { server.stop() }
        let client = try makeClient()
        // The response comes from the thread, so its mask is set by now.
        _ = try await client.send(HTTPRequest(method: .get, url: server.url))

        let masks = try blockedSignals(ofThreadsNamed: "http-client")
        #expect(!masks.isEmpty)
        for mask in masks {
            for signal in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
                #expect(mask & 1 << (signal - 1) == 0, "signal \(signal) is blocked")
            }
            for signal in [SIGTERM, SIGINT, SIGHUP, SIGPIPE] {
                #expect(mask & 1 << (signal - 1) != 0, "signal \(signal) is not blocked")
            }
        }
    }
}

/// Returns the signal masks of this process's threads with that name.
private func blockedSignals(ofThreadsNamed name: String) throws -> [UInt64] {
    let folder = try #require(unsafe opendir("/proc/self/task"))
    defer { unsafe closedir(folder) }
    var masks: [UInt64] = []
    while let entry = unsafe readdir(folder) {
        let thread = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
        }
        // A thread may end between the two reads.
        guard let text = contents(of: "/proc/self/task/\(thread)/status") else { continue }
        let fields = text.split(separator: "\n").map { $0.split(separator: "\t") }
        guard fields.contains(["Name:", Substring(name)]) else { continue }
        let mask = try #require(fields.first { $0.first == "SigBlk:" }?.last)
        masks.append(try #require(UInt64(mask, radix: 16)))
    }
    return masks
}

private func contents(of path: String) -> String? {
    guard let file = unsafe fopen(path, "r") else { return nil }
    defer { unsafe fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = unsafe fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes.prefix(count), as: UTF8.self)
}
