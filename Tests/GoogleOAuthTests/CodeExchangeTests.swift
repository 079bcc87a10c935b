import Crypto
import Testing

@testable import GoogleOAuth
@testable import HTTPClient

@Suite("The exchange of a server auth code")
struct CodeExchangeTests {
    /// The sample response of Google's page about web servers
    /// (https://developers.google.com/identity/protocols/oauth2/web-server#exchange-authorization-code).
    private static let sample = """
        {
          "access_token": "1/fFAGRNJru1FTz70BzhT3Zg",
          "expires_in": 3920,
          "token_type": "Bearer",
          "scope": "https://www.googleapis.com/auth/drive.metadata.readonly https://www.googleapis.com/auth/calendar.readonly",
          "refresh_token": "1//xEoDL4iW3cxlI7yDbSRFYNG01kVKM2C-259HOF2aQbI"
        }
        """

    private func exchange(_ status: Int, _ body: String) -> CodeExchange { CodeExchange(read(status, body)) }

    @Test("brings the tokens of Google's sample response")
    func sample() throws {
        guard case .granted(let tokens) = exchange(200, Self.sample) else {
            Issue.record("the sample is not read as tokens")
            return
        }
        #expect(tokens.accessToken.reveal() == "1/fFAGRNJru1FTz70BzhT3Zg")
        #expect(tokens.lifetime == .seconds(3920))
        #expect(tokens.rotated?.reveal() == "1//xEoDL4iW3cxlI7yDbSRFYNG01kVKM2C-259HOF2aQbI")
        #expect(tokens.scope?.split(separator: " ").count == 2)
        #expect(tokens.account == nil)
    }

    @Test("keeps the refresh token of a faulty answer")
    func incomplete() {
        for body in [#"{"refresh_token":"1//kept","expires_in":"soon"}"#, #"{"refresh_token":"1//kept","access_to"#] {
            guard case .incomplete(let token) = exchange(200, body) else {
                Issue.record("\(body) loses its refresh token")
                continue
            }
            #expect(token.reveal() == "1//kept")
        }
    }

    @Test(
        "distinguishes a useless code, a wrong client and an absent Google",
        arguments: [
            (400, #"{"error":"invalid_grant","error_description":"Malformed auth code."}"#, "refused"),
            (400, #"{"error":"invalid_grant","error_description":"Bad Request"}"#, "refused"),
            (400, #"{"error":"invalid_grant","error_description":"Code was already redeemed."}"#, "refused"),
            (400, #"{"error":"redirect_uri_mismatch","error_description":"Bad Request"}"#, "foreign"),
            (401, #"{"error":"unauthorized_client","error_description":"Unauthorized"}"#, "foreign"),
            (400, #"{"error":"admin_policy_enforced"}"#, "refused"),
            (401, #"{"error":"invalid_client","error_description":"Unauthorized"}"#, "client"),
            (401, #"{"error":"deleted_client","error_description":"The OAuth client was deleted."}"#, "client"),
            (
                400,
                #"{"error":"invalid_request","error_description":"We cannot verify the authenticity of this app"}"#,
                "client"
            ),
            (429, "", "away"), (500, #"{"error":"internal_failure"}"#, "away"), (503, "<html>", "away"),
            (200, "<html>", "away"), (200, #"{"scope":"openid"}"#, "refused"), (403, "<html>", "away"),
            (400, #"{"error":"something_new"}"#, "away"), (400, #"{"error":"invalid_dpop_proof"}"#, "proof"),
            (400, #"{"error":"use_dpop_nonce"}"#, "proof"),
        ]
    )
    func refusals(status: Int, body: String, expected: String) {
        let meaning =
            switch exchange(status, body) {
            case .granted: "granted"
            case .incomplete: "incomplete"
            case .refused: "refused"
            case .foreign: "foreign"
            case .clientRefused: "client"
            case .proofRefused: "proof"
            case .unavailable: "away"
            }
        #expect(meaning == expected)
    }

    @Test("has the fields of Google's page for iOS, with an empty redirect address")
    func request() throws {
        let client = OAuthClientCredentials(id: "123-server.apps.googleusercontent.com", secret: Secret("GOCSPX-a&b"))
        let pattern = RequestPattern.form(to: try Endpoint("https://oauth2.googleapis.com/token"))
        let request = HTTPRequest(exchanging: Secret("4/0Ab+c="), client: client, pattern: pattern)
        #expect(
            String(decoding: try #require(request.body).reveal(), as: UTF8.self) == """
                client_id=123-server.apps.googleusercontent.com&code=4%2F0Ab%2Bc%3D&grant_type=authorization_code&redirect_uri=&\
                client_secret=GOCSPX-a%26b
                """
        )
    }
}
