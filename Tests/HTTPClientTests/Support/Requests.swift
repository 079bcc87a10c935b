import Base

@testable import HTTPClient

/// The result of a request in a form that a test can compare.
func outcome(of send: () async throws(HTTPError) -> HTTPResponse) async -> Result<HTTPResponse, HTTPError> {
    do throws(HTTPError) {
        return .success(try await send())
    } catch {
        return .failure(error)
    }
}

extension Result<HTTPResponse, HTTPError> {
    var success: HTTPResponse? {
        guard case .success(let response) = self else { return nil }
        return response
    }

    var failure: HTTPError? {
        guard case .failure(let failure) = self else { return nil }
        return failure
    }
}

extension HTTPResponse {
    var text: String { String(decoding: body.reveal(), as: UTF8.self) }
}

/// Makes a client whose configuration the closure changes.
func makeClient(
    time: any TimeSource = SystemTime(),
    _ change: (inout HTTPClient.Configuration) -> Void = { _ in }
) throws -> HTTPClient {
    var configuration = HTTPClient.Configuration()
    // A busy machine must not fail a test: the deadlines that a test is about are its own.
    configuration.connectDeadline = .seconds(60)
    configuration.totalDeadline = .seconds(120)
    change(&configuration)
    return try HTTPClient(configuration: configuration, time: time)
}

extension HTTPRequest {
    /// Makes a request to a valid URL; an invalid one is an error of the test.
    init(
        method: RequestPattern.Method,
        url: String,
        headers: [(String, String)] = [],
        body: HTTPBody? = nil
    ) {
        do throws(FormatError) {
            let endpoint = try Endpoint(url)
            self.init(method: method, endpoint: endpoint, headers: headers, body: body)
        } catch {
            preconditionFailure("\(url): \(error)")
        }
    }
}

/// Makes a POST with a small body.
func post(_ url: String, _ body: String = "refresh_token=abc") -> HTTPRequest {
    HTTPRequest(method: .post, url: url, body: HTTPBody(Array(body.utf8)))
}
