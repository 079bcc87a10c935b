import Base
import Crypto
import GoogleOAuth
import HTTPClient
import Worker

/// A refresh with a made-up token, which shows if the address is a token endpoint and if it knows the client id.
///
/// Google answers `invalid_grant` for a known client id, and `invalid_client` for an unknown one.
struct TokenEndpointProbe {
    static let subject = "token endpoint"
    /// No server has issued it, so nothing can be revealed or ended.
    private static let madeUpToken = "1//refresh-worker-doctor-made-this-up"
    private static let madeUpClientID = "refresh-worker-doctor"

    let endpoint: Endpoint
    /// The client id to ask about; `nil` if none is configured.
    let clientID: String?
    let clientSecret: Secret?

    var request: HTTPRequest {
        let client = OAuthClientCredentials(id: clientID ?? Self.madeUpClientID, secret: clientSecret)
        return RefreshRequest.make(token: Secret(Self.madeUpToken), client: client, pattern: .form(to: endpoint))
    }

    func diagnosis(of response: HTTPResponse) -> Diagnosis {
        let code = JSONValue.object(in: response.body.reveal())?["error"]?.string
        return diagnosis(status: response.status, code: code)
    }

    /// Judges an answer by its status and the member `error` of its body, `nil` if it has none.
    func diagnosis(status: Int, code: String?) -> Diagnosis {
        let answer = "\(endpoint) answers \(status)"
        switch (status, code) {
        case (400...403, "invalid_grant"?):
            let known = clientID.map { ", and knows the client id \(DisplayedText($0))" } ?? ""
            return ok("\(answer) invalid_grant to a made-up token, as it should\(known)")
        case (400...403, let code?) where Self.clientCodes.contains(code):
            guard let clientID else { return ok("\(answer) \(code) to a made-up client id, as it should") }
            let advice =
                "copy the client id of your iOS app from the Google Cloud console, and check its secret, if it has one"
            return fault("\(answer) \(code): it refuses the client id \(DisplayedText(clientID))", advice: advice)
        case (400...403, let code?):
            return warning(
                "\(answer) \(DisplayedText(code)) to a made-up token: expected invalid_grant or invalid_client"
            )
        case (429, _), (500..., _):
            return warning("\(answer): it does not work now", advice: "try again later")
        case (300..<400, _):
            return fault("\(answer), a redirect, which the worker does not follow", advice: "correct --token-endpoint")
        case (200..<300, _):
            return fault(
                "\(answer) to a made-up token, so it is not a token endpoint",
                advice: "correct --token-endpoint"
            )
        case (404, _):
            return fault("\(answer): the path is wrong", advice: "correct --token-endpoint")
        default:
            return fault(
                "\(answer) without an OAuth error, so it is not a token endpoint",
                advice: "correct --token-endpoint"
            )
        }
    }

    private static let clientCodes = ["invalid_client", "deleted_client", "disabled_client", "restricted_client"]

    private func ok(_ text: String) -> Diagnosis { .ok(Self.subject, text, isAboutEndpoint: true) }

    private func warning(_ finding: String, advice: String? = nil) -> Diagnosis {
        .warning(Self.subject, finding, advice: advice, isAboutEndpoint: true)
    }

    private func fault(_ finding: String, advice: String) -> Diagnosis {
        .fault(Self.subject, finding, advice: advice, isAboutEndpoint: true)
    }
}
