import Crypto
import GoogleOAuth
import Testing

@testable import HTTPClient

@Suite("The refresh request")
struct RefreshRequestTests {
    private func body(of request: HTTPRequest) throws -> String {
        String(decoding: try #require(request.body).reveal(), as: UTF8.self)
    }

    @Test("names the client, the token and the kind of grant: neither a scope nor a secret")
    func publicClient() throws {
        let request = HTTPRequest(
            refreshing: Secret("1//0gToken"),
            client: OAuthClientCredentials(id: "1234-abc.apps.googleusercontent.com"),
            pattern: .form(to: try Endpoint("https://oauth2.googleapis.com/token"))
        )
        #expect(request.pattern.method == .post)
        #expect(request.pattern.endpoint.url == "https://oauth2.googleapis.com/token")
        #expect(
            try body(of: request)
                == "client_id=1234-abc.apps.googleusercontent.com&refresh_token=1%2F%2F0gToken&grant_type=refresh_token"
        )
        #expect(request.pattern.headers.map(\.0) == ["Content-Type", "Accept"])
        #expect(request.pattern.headers.map(\.1) == ["application/x-www-form-urlencoded", "application/json"])
    }

    @Test("of a confidential client has its secret, which Google's iOS clients do not have")
    func confidentialClient() throws {
        let request = HTTPRequest(
            refreshing: Secret("r"),
            client: OAuthClientCredentials(id: "c", secret: Secret("p&s=1")),
            pattern: .form(to: try Endpoint("https://id.example/token"))
        )
        #expect(try body(of: request) == "client_id=c&refresh_token=r&grant_type=refresh_token&client_secret=p%26s%3D1")
    }

    @Test("carries any byte of a token or a client id unchanged")
    func encoding() throws {
        let request = HTTPRequest(
            refreshing: Secret("a+b/c=d&e%f ~é"),
            client: OAuthClientCredentials(id: "id&scope=all"),
            pattern: .form(to: try Endpoint("https://id.example/token"))
        )
        #expect(
            try body(of: request)
                == "client_id=id%26scope%3Dall&refresh_token=a%2Bb%2Fc%3Dd%26e%25f+%7E%C3%A9&grant_type=refresh_token"
        )
    }

    @Test("shows no token in any printed form")
    func noSecretShows() throws {
        let request = HTTPRequest(
            refreshing: Secret(sentToken),
            client: OAuthClientCredentials(id: "c", secret: Secret("hush-hush-hush-hush")),
            pattern: .form(to: try Endpoint("https://id.example/token"))
        )
        var dumped = ""
        dump(request, to: &dumped)
        let prints = "\(request) \(String(reflecting: request)) \(dumped)"
        #expect(!prints.contains("0gSent"))
        #expect(!prints.contains("hush"))
    }
}
