// What the examples use of Vapor 4, with its declarations, and with bodies for the tests.

import NIOCore
import NIOHTTP1

package typealias HTTPStatus = HTTPResponseStatus

/// What a handler returns.
package protocol AsyncResponseEncodable {}

extension String: AsyncResponseEncodable {}
extension HTTPStatus: AsyncResponseEncodable {}

/// A number of bytes, such as `"64kb"`.
package struct ByteCount: ExpressibleByStringLiteral, Sendable {
    package init(stringLiteral value: String) {}
}

/// How the body of a request comes.
package enum HTTPBodyStreamStrategy: Sendable {
    case stream
    case collect(maxSize: ByteCount?)
}

/// A request that came.
package final class Request: Sendable {
    /// The parts of a path.
    package struct Parameters: Sendable {
        let values: [String: String]

        package func require(_ name: String) throws -> String {
            guard let value = values[name] else { throw Abort(.badRequest) }
            return value
        }
    }

    /// A request's body.
    package struct Body: Sendable {
        package let data: ByteBuffer?
    }

    package let parameters: Parameters
    package let headers: HTTPHeaders
    package let body: Body

    init(parameters: Parameters, headers: HTTPHeaders, body: Body) {
        self.parameters = parameters
        self.headers = headers
        self.body = body
    }
}

/// An error that becomes a response.
package struct Abort: Error, Sendable {
    package var status: HTTPStatus
    package var headers: HTTPHeaders
    package var reason: String

    package init(_ status: HTTPStatus, headers: HTTPHeaders = [:], reason: String? = nil) {
        self.status = status
        self.headers = headers
        self.reason = reason ?? ""
    }
}

/// The server.
package final class Application {
    package typealias Handler = @Sendable (Request) async throws -> any AsyncResponseEncodable

    private var handlers: [String: Handler] = [:]

    package init() {}

    package func get(
        _ path: String...,
        use handler: @Sendable @escaping (Request) async throws -> some AsyncResponseEncodable
    ) {
        handlers["GET \(path.joined(separator: "/"))"] = handler
    }

    package func on(
        _ method: HTTPMethod,
        _ path: String...,
        body: HTTPBodyStreamStrategy = .collect(maxSize: nil),
        use handler: @Sendable @escaping (Request) async throws -> some AsyncResponseEncodable
    ) {
        handlers["\(method) \(path.joined(separator: "/"))"] = handler
    }

    /// Calls a route. Only these declarations have it.
    package func respond(
        _ route: String,
        parameters: [String: String] = [:],
        headers: HTTPHeaders = [:],
        body: String = ""
    ) async throws -> (any AsyncResponseEncodable)? {
        let request = Request(
            parameters: .init(values: parameters),
            headers: headers,
            body: .init(data: ByteBuffer(bytes: body.utf8))
        )
        return try await handlers[route]?(request)
    }
}
