import Base
import HTTPClient
import TestSupport

/// A ``FrameServer`` and a client.
struct HTTP2Fixture {
    let authority: TestAuthority
    let server: FrameServer
    let client: HTTPClient

    init(
        time: any TimeSource = SystemTime(),
        protocol name: String = "h2",
        configure: (inout HTTPClient.Configuration) -> Void = { _ in },
        script: @escaping @Sendable (FrameConnection) -> Void
    ) throws {
        authority = try TestAuthority()
        try authority.issue("good", for: "DNS:localhost,IP:127.0.0.1")
        server = try FrameServer(authority, protocol: name, script: script)
        let file = authority.certificateFile
        client = try makeClient(time: time) { configuration in
            configuration.caFile = file
            configure(&configuration)
        }
    }

    func stop() {
        client.shutDown()
        server.stop()
        authority.remove()
    }

    func send(_ body: String = "token", deadline: Duration? = nil) async -> Result<HTTPResponse, HTTPError> {
        await outcome { () throws(HTTPError) in try await client.send(post(server.url, body), deadline: deadline) }
    }

    /// Submits requests with the bodies "request 1" and so on together, and returns their results in that order.
    func sendTogether(_ count: Int) async -> [Result<HTTPResponse, HTTPError>] {
        let (results, continuation) = AsyncStream.makeStream(of: (Int, Result<HTTPResponse, HTTPError>).self)
        client.submit(
            (1...count).map { number in
                HTTPTransfer(post(server.url, "request \(number)")) { continuation.yield((number, $0)) }
            }
        )
        var received: [Int: Result<HTTPResponse, HTTPError>] = [:]
        for await (number, result) in results {
            received[number] = result
            if received.count == count { break }
        }
        return (1...count).compactMap { received[$0] }
    }
}
