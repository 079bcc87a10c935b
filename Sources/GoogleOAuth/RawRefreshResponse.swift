package import HTTPClient

/// The unparsed response to a refresh.
///
/// Parsing takes time, so the thread that receives responses does not do it.
package enum RawRefreshResponse: Sendable {
    case response(HTTPResponse)
    /// The request failed without a complete answer.
    case failure(HTTPFailure)
    /// The verdict of an endpoint that does not use HTTP, such as a fake one in a test.
    case answer(ParsedRefreshResponse)

    init(_ result: Result<HTTPResponse, HTTPFailure>) {
        self =
            switch result {
            case .success(let response): .response(response)
            case .failure(let failure): .failure(failure)
            }
    }
}
