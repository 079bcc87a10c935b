import Glibc
import TestSupport
import Testing

@testable import HTTPServer

@Suite("The server waits without blocking, and shuts down cleanly", .timeLimit(.minutes(10)))
struct LifecycleTests {
    private static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test("Hundreds of requests wait for their handlers on one thread", arguments: [1, 2])
    func manyWait(threads: Int) async throws {
        let clients = 300
        let arrived = Event()
        let released = Event()
        let handler: HTTPServer.Handler = { _ in
            arrived.happen()
            await released.wait()
            return .respond(.text("done"))
        }
        try await withServer(.init(threads: threads), handler: handler) { server in
            try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<clients {
                    group.addTask {
                        let client = try RawClient(port: server.port)
                        await client.send(Self.get)
                        return await client.answer()?.body
                    }
                }
                await arrived.wait(times: clients)
                #expect(server.openRequests == clients)
                released.happen()
                for try await body in group { #expect(body == "done") }
            }
        }
    }

    @Test("A connection serves several requests in sequence")
    func keptAlive() async throws {
        try await withServer(handler: { _ in .respond(.json("{}")) }) { server in
            let client = try RawClient(port: server.port)
            for _ in 0..<1000 {
                await client.send(Self.get)
                #expect(await client.answer()?.body == "{}")
            }
        }
    }

    @Test("A client that has closed its sending side gets its response, however late")
    func halfClosedWhileHandled() async throws {
        let arrived = Event()
        let released = Event()
        let cancelled = Event()
        let handler: HTTPServer.Handler = { request in
            arrived.happen()
            if request.path == "/lost" {
                await untilCancelled()
                cancelled.happen()
                return .drop
            }
            await released.wait()
            return .respond(.text("cancelled: \(Task.isCancelled)"))
        }
        try await withServer(handler: handler) { server in
            let half = try RawClient(port: server.port)
            await half.send("GET /half HTTP/1.1\r\nHost: h\r\n\r\n")
            half.closeSendingSide()
            let lost = try RawClient(port: server.port)
            await lost.send("GET /lost HTTP/1.1\r\nHost: h\r\n\r\n")
            await arrived.wait(times: 2)
            lost.reset()
            // The check that finds the lost connection has checked the other one too.
            await cancelled.wait()
            released.happen()
            #expect(await half.answer()?.body == "cancelled: false")
        }
    }

    @Test(
        "A client that closes its sending side with its request gets its response while others are connected",
        arguments: [1, 2]
    )
    func halfClosedAmongOthers(threads: Int) async throws {
        let handler: HTTPServer.Handler = { .respond(.text("\($0.method) \($0.body.count)")) }
        try await withServer(.init(threads: threads), handler: handler) { server in
            // libmicrohttpd treats the oldest connection of a thread specially; here it is one of these.
            let others = try (0..<8).map { _ in try RawClient(port: server.port) }
            for other in others {
                await other.send(Self.get)
                #expect(await other.answer()?.status == 200)
            }
            for _ in 0..<50 {
                let get = try RawClient(port: server.port)
                await get.send(Self.get)
                get.closeSendingSide()
                #expect(await get.answer()?.body == "GET 0")
                #expect(await get.everything() == "")
                let post = try RawClient(port: server.port)
                await post.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
                post.closeSendingSide()
                #expect(await post.answer()?.body == "POST 3")
                #expect(await post.everything() == "")
            }
        }
    }

    @Test("A client whose connection is lost cancels the handler")
    func lostConnection() async throws {
        let arrived = Event()
        let cancelled = Event()
        let handler: HTTPServer.Handler = { _ in
            arrived.happen()
            await untilCancelled()
            cancelled.happen()
            return .drop
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            await client.send(Self.get)
            await arrived.wait()
            client.reset()
            await cancelled.wait()
        }
    }

    @Test("Stopping waits for a request in progress, whose response closes the connection")
    func gracefulStop() async throws {
        let arrived = Event()
        let released = Event()
        let server = try HTTPServer(configuration: .init()) { _ in
            arrived.happen()
            await released.wait()
            return .respond(.text("late"))
        }
        let client = try RawClient(port: server.port)
        await client.send(Self.get)
        await arrived.wait()
        async let first: Void = server.stop(within: .seconds(30))
        async let second: Void = server.stop(within: .seconds(30))
        // The port is closed once the stop has begun, so a refused connection is the event for the release.
        try await poll { (try? RawClient(port: server.port)) == nil }
        released.happen()
        _ = await (first, second)
        let answer = await client.answer()
        #expect(answer?.body == "late")
        #expect(answer?.head.contains("Connection: close") == true)
        #expect(await client.everything() == "")
        await server.stop()
        #expect(server.openRequests == 0)
    }

    @Test("Stopping ends while clients keep every thread busy", arguments: [1, 4])
    func busyStop(threads: Int) async throws {
        for _ in 0..<100 {
            let answered = Event()
            let server = try HTTPServer(configuration: .init(threads: threads)) { _ in .respond(.text("x")) }
            await withTaskGroup { group in
                for _ in 0..<8 {
                    group.addTask {
                        guard let client = try? RawClient(port: server.port) else { return }
                        repeat {
                            await client.send(Self.get)
                            answered.happen()
                        } while await client.answer() != nil
                    }
                }
                await answered.wait(times: 40)
                await server.stop(within: .zero)
            }
        }
    }

    @Test("Stopping closes connections whose response is late, and cancels their handlers")
    func deadline() async throws {
        let arrived = Event()
        let cancelled = Event()
        let server = try HTTPServer(configuration: .init(threads: 2)) { _ in
            arrived.happen()
            await untilCancelled()
            cancelled.happen()
            return .respond(.text("not sent"))
        }
        let clients = try (0..<50).map { _ in try RawClient(port: server.port) }
        for client in clients { await client.send(Self.get) }
        await arrived.wait(times: clients.count)
        await server.stop(within: .zero)
        for client in clients { #expect(await client.everything() == "") }
        await cancelled.wait(times: clients.count)
        #expect(server.openRequests == 0)
    }

    @Test("Stopping in the middle of traffic neither crashes nor hangs", arguments: 0..<10)
    func stopUnderLoad(round: Int) async throws {
        let answered = Event()
        let server = try HTTPServer(configuration: .init(threads: 2)) { _ in
            answered.happen()
            await Task.yield()
            return .respond(.text("x"))
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    guard let client = try? RawClient(port: server.port) else { return }
                    repeat { await client.send(Self.get) } while await client.answer() != nil
                }
            }
            await answered.wait(times: 50 + 10 * round)
            await server.stop(within: .zero)
        }
        #expect(server.openRequests == 0)
    }

    @Test("A port that is in use is reported as such")
    func portInUse() async throws {
        try await withServer(handler: { _ in .drop }) { server in
            let error = #expect(throws: HTTPServerError.self) {
                try HTTPServer(configuration: .init(listen: .tcp(address: "127.0.0.1", port: server.port))) { _ in .drop
                }
            }
            #expect(error?.code == .cannotListen)
            #expect(error?.systemError == EADDRINUSE)
            #expect(error?.description.contains("127.0.0.1:\(server.port)") == true)
        }
    }

    @Test("An invalid address is reported as such", arguments: ["", "localhost", "1.2.3", "::g"])
    func badAddress(address: String) {
        let error = #expect(throws: HTTPServerError.self) {
            try HTTPServer(configuration: .init(listen: .tcp(address: address, port: 0))) { _ in .drop }
        }
        #expect(error?.code == .badAddress)
    }
}
