import Base
import Crypto
import Dispatch
import Storage
import TestSupport
import Testing

@testable import HTTPClient
@testable import RefreshWorker
@testable import Scheduler

@Suite("A server that is not Google's and keeps the thread of its HTTP client busy", .timeLimit(.minutes(10)))
struct HeldThreadTests {
    /// Holds a client's thread until `gate` is signalled, as a server can with TLS messages that OpenSSL reads in one
    /// call.
    private static func hold(_ client: HTTPClient, by gate: DispatchSemaphore) async throws -> BackgroundLoop {
        let isHeld = AwaitedState(false)
        let request = HTTPRequest(method: .get, endpoint: try Endpoint("http://127.0.0.1:9/"))
        let transfer = HTTPTransfer(
            request,
            beforeSend: {
                isHeld.change { $0 = true }
                gate.wait()
                return false
            },
            completion: { _ in }
        )
        client.submit([transfer])
        await isHeld.wait { $0 }
        return { _ = try? await client.send(request) }
    }

    @Test("delays no request to Google, and neither the end of the worker nor that of the process")
    func held() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try fixture.write("the secret that signs the notices", to: "notices")
            let context = try fixture.context([
                (.metricsLog, fixture.path("metrics")), (.logLevel, "error"), (.noticeURL, "http://127.0.0.1:9/"),
                (.noticeSecretFile, fixture.path("notices")),
            ])
            let store = try fixture.openStore()
            let worker = try await Worker(context, store: store, vault: try context.openVault())
            let notices = try #require(worker.notices)
            try #require(worker.http !== notices.http)
            let gate = DispatchSemaphore(value: 0)
            defer { gate.signal() }
            let service = try await Self.hold(notices.http, by: gate)

            let google = try ScriptedServer { _ in [.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")] }
            defer { google.stop() }
            let request = HTTPRequest(method: .get, endpoint: try Endpoint(google.url))
            #expect(try await worker.http.send(request).status == 200)

            let running = worker.start([service])
            async let stopped: Void = worker.stop(running)
            await fixture.time.sleepers(atLeast: 1, for: .seconds(2))
            fixture.time.advance(by: .seconds(2))
            await stopped
            await #expect(throws: StoreError.self) { _ = try await store.grantStatistics(at: fixture.time.now) }
        }
    }

    @Test("does not hold up who releases the client")
    func released() async throws {
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }
        _ = try await Self.hold(try HTTPClient(), by: gate)
    }
}
