// What the examples use of Hummingbird 2, with its declarations, and with bodies for the tests.

import HTTPTypes
import NIOCore

/// What a handler returns.
package protocol ResponseGenerator {}

extension String: ResponseGenerator {}
extension HTTPResponse.Status: ResponseGenerator {}

/// The parts of a request that a handler gets beside it.
package struct BasicRequestContext: Sendable {
    /// The parts of a path.
    package struct Parameters: Sendable {
        let values: [String: String]

        package func require(_ name: String) throws -> String {
            guard let value = values[name] else { throw HTTPError(.conflict) }
            return value
        }
    }

    package var parameters: Parameters
}

/// A request that came.
package struct Request: Sendable {
    /// A request's body.
    package struct Body: Sendable {
        let buffer: ByteBuffer

        package func collect(upTo maxSize: Int) async throws -> ByteBuffer { buffer }
    }

    package var headers: HTTPFields
    package var body: Body
}

/// An error that becomes a response.
package struct HTTPError: Error, Sendable {
    package var status: HTTPResponse.Status
    package var headers: HTTPFields
    package var body: String?

    package init(_ status: HTTPResponse.Status) {
        self.status = status
        headers = [:]
    }

    package init(_ status: HTTPResponse.Status, message: String) {
        self.status = status
        headers = [:]
        body = message
    }
}

/// The routes.
package final class Router<Context> {
    package typealias Handler = @Sendable (Request, BasicRequestContext) async throws -> any ResponseGenerator

    private var handlers: [String: Handler] = [:]

    package init() {}

    @discardableResult
    package func get(
        _ path: String,
        use handler: @Sendable @escaping (Request, BasicRequestContext) async throws -> some ResponseGenerator
    ) -> Self {
        handlers["GET \(path)"] = handler
        return self
    }

    @discardableResult
    package func post(
        _ path: String,
        use handler: @Sendable @escaping (Request, BasicRequestContext) async throws -> some ResponseGenerator
    ) -> Self {
        handlers["POST \(path)"] = handler
        return self
    }

    /// Calls a route. Only these declarations have it.
    package func respond(
        _ route: String,
        parameters: [String: String] = [:],
        headers: HTTPFields = [:],
        body: String = ""
    ) async throws -> (any ResponseGenerator)? {
        let request = Request(headers: headers, body: .init(buffer: ByteBuffer(bytes: body.utf8)))
        let context = BasicRequestContext(parameters: .init(values: parameters))
        return try await handlers[route]?(request, context)
    }
}
