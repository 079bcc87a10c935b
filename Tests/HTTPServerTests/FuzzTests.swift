import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import HTTPServer

@Suite("The server survives arbitrary bytes", .timeLimit(.minutes(10)))
struct FuzzTests {
    private static let sound = [
        "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "HEAD http://h/%2e%00 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 99999\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    ].map { Array($0.utf8) }

    private static let tokens = ["\r\n", "\n", "\0", ":", " ", "0", "-1", "Host: h", "chunked", "HTTP/1.1", "%", "ÿ"]

    /// The number of workers that are still running.
    private final class RunningWorkers: Sendable {
        let count = Mutex(8)
    }

    private static func mutated(_ random: any RandomSource) -> [UInt8] {
        func pick(_ count: Int) -> Int { Int(random.nextBits() % UInt64(count)) }
        var bytes = sound[pick(sound.count)]
        for _ in 0..<pick(6) where !bytes.isEmpty {
            let index = pick(bytes.count)
            switch pick(6) {
            case 0: bytes[index] = UInt8(truncatingIfNeeded: random.nextBits())
            case 1: bytes.insert(contentsOf: tokens[pick(tokens.count)].utf8, at: index)
            case 2: bytes.removeSubrange(index..<min(bytes.count, index + 1 + pick(8)))
            case 3: bytes.removeLast(bytes.count - index)
            case 4: bytes.insert(contentsOf: repeatElement(bytes[index], count: pick(3000)), at: index)
            default: bytes += sound[pick(sound.count)]
            }
        }
        return bytes
    }

    @Test("Thousands of broken requests leave nothing open", arguments: [1, 2])
    func brokenRequests(threads: Int) async throws {
        let seed = UInt64.random(in: .min ... .max)
        print("fuzz seed \(seed)")
        let configuration = HTTPServer.Configuration(threads: threads)
        let immediateHandler: HTTPServer.ImmediateHandler = { $0.method == "HEAD" ? .respond(.text("immediate")) : nil }
        let handler: HTTPServer.Handler = { .respond(.text("\($0.path) \($0.query.count) \($0.body.count)")) }
        let time = ManualTime()
        try await withServer(configuration, time: time, immediateHandler: immediateHandler, handler: handler) {
            server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Deadlines end the requests that never become complete.
                let running = RunningWorkers()
                group.addTask {
                    try await poll(
                        until: { running.count.withLock { $0 } == 0 },
                        step: {
                            time.advance(by: .milliseconds(200))
                            server.clients.checkAll()
                        }
                    )
                }
                for worker in 0..<8 {
                    group.addTask {
                        defer { running.count.withLock { $0 -= 1 } }
                        let random = SeededRandom(seed: seed &+ UInt64(worker))
                        for _ in 0..<400 {
                            let client = try RawClient(port: server.port)
                            await client.send(Self.mutated(random))
                            if random.nextUnit() < 0.5 { client.closeSendingSide() } else { client.hangUp() }
                            if random.nextUnit() < 0.2 { _ = await client.answer() }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let client = try RawClient(port: server.port)
            await client.send("GET /alive HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.answer()?.body == "/alive 0 0", "seed \(seed)")
            client.hangUp()
            try await poll(
                until: { server.openRequests == 0 && server.openConnections == 0 },
                step: {
                    time.advance(by: .seconds(1))
                    server.clients.checkAll()
                }
            )
        }
    }
}
