// What the examples use of AsyncHTTPClient, with its declarations, and with bodies for the tests.

import NIOCore
import NIOHTTP1
import Synchronization

/// A request to send.
package struct HTTPClientRequest: Sendable {
    /// A request's body.
    package struct Body: Sendable {
        package let bytes: [UInt8]

        package static func bytes<Bytes: RandomAccessCollection & Sendable>(_ bytes: Bytes) -> Body
        where Bytes.Element == UInt8 {
            Body(bytes: Array(bytes))
        }
    }

    package var url: String
    package var method: HTTPMethod = .GET
    package var headers: HTTPHeaders = [:]
    package var body: Body?

    package init(url: String) { self.url = url }
}

/// A response that came.
package struct HTTPClientResponse: Sendable {
    /// A response's body.
    package struct Body: Sendable {
        let buffer: ByteBuffer

        package func collect(upTo maxBytes: Int) async throws -> ByteBuffer { buffer }
    }

    package var status: HTTPResponseStatus
    package var headers: HTTPHeaders
    package var body: Body

    package init(status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: String = "") {
        self.status = status
        self.headers = headers
        self.body = Body(buffer: ByteBuffer(bytes: body.utf8))
    }
}

/// The client, whose responses a test chooses.
package final class HTTPClient: Sendable {
    /// A request, and the deadline that it was sent with.
    package struct Sent: Sendable {
        package let request: HTTPClientRequest
        package let timeout: TimeAmount
    }

    private struct State {
        var respond: @Sendable (HTTPClientRequest) -> HTTPClientResponse = { _ in .init(status: .serviceUnavailable) }
        var sent: [Sent] = []
    }

    package static let shared = HTTPClient()

    private let state = Mutex(State())

    package func execute(_ request: HTTPClientRequest, timeout: TimeAmount) async throws -> HTTPClientResponse {
        state.withLock { state in
            state.sent.append(Sent(request: request, timeout: timeout))
            return state.respond(request)
        }
    }

    /// The requests so far. Only these declarations have it.
    package var sent: [Sent] { state.withLock { $0.sent } }

    /// Chooses the responses. Only these declarations have it.
    package func respond(_ respond: @escaping @Sendable (HTTPClientRequest) -> HTTPClientResponse) {
        state.withLock {
            $0.respond = respond
            $0.sent = []
        }
    }
}
