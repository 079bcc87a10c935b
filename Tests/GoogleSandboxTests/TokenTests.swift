import TestSupport
import Testing

@testable import Base
@testable import GoogleSandbox

@Suite("The token endpoint answers as Google's does", .timeLimit(.minutes(10)))
struct TokenTests {
    let fixture = SandboxFixture()

    @Test("A good refresh gets an access token and, like Google's, no refresh token")
    func good() async throws {
        await fixture.grant("1//0a")
        let answer = try #require(await fixture.refresh("1//0a"))
        #expect(answer.status == 200)
        #expect(answer.accessToken.hasPrefix("ya29."))
        #expect(answer.body["expires_in"] == 3599)
        #expect(answer.body["token_type"] == "Bearer")
        #expect(answer.body["refresh_token"] == nil)
        #expect(answer.body["refresh_token_expires_in"] == nil)
        #expect(answer.header("Content-Type") == "application/json; charset=utf-8")
        #expect(answer.header("Retry-After") == nil)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let form: [String: String]
        let status: Int
        let error: String
        let text: String
    }

    @Test(
        "A refused refresh gets Google's error text",
        arguments: [
            Refusal(
                testDescription: "no client id",
                form: ["grant_type": "refresh_token", "refresh_token": "1//0a"],
                status: 400,
                error: "invalid_request",
                text: "Could not determine client ID from request."
            ),
            Refusal(
                testDescription: "unknown client",
                form: ["client_id": "c9", "grant_type": "refresh_token", "refresh_token": "1//0a"],
                status: 401,
                error: "invalid_client",
                text: "The OAuth client was not found."
            ),
            Refusal(
                testDescription: "wrong grant type",
                form: ["client_id": "c1", "grant_type": "password", "refresh_token": "1//0a"],
                status: 400,
                error: "unsupported_grant_type",
                text: "Invalid grant_type: "
            ),
            Refusal(
                testDescription: "unknown token",
                form: ["client_id": "c1", "grant_type": "refresh_token", "refresh_token": "x"],
                status: 400,
                error: "invalid_grant",
                text: "Bad Request"
            ),
            Refusal(
                testDescription: "another client's token",
                form: ["client_id": "c2", "grant_type": "refresh_token", "refresh_token": "1//0a"],
                status: 401,
                error: "unauthorized_client",
                text: "Unauthorized"
            ),
        ]
    )
    func refused(_ row: Refusal) async throws {
        await fixture.grant("1//0a")
        await fixture.control("settings", #"{"clients":["c1","c2"]}"#)
        let answer = try #require(await fixture.ask("POST", "/token", form: row.form))
        #expect(answer.status == row.status)
        #expect(answer.error == row.error)
        #expect(answer.body["error_description"]?.stringValue == row.text)
    }

    @Test("A secret or a scope in the request is counted")
    func unexpectedFields() async {
        await fixture.grant("1//0a")
        let good = ["client_id": "c1", "grant_type": "refresh_token", "refresh_token": "1//0a"]
        _ = await fixture.ask("POST", "/token", form: good)
        #expect(await fixture.statistics()["unexpected_fields"] == 0)
        _ = await fixture.ask("POST", "/token", form: good.merging(["client_secret": "s"]) { $1 })
        _ = await fixture.ask("POST", "/token", form: good.merging(["scope": "openid"]) { $1 })
        #expect(await fixture.statistics()["unexpected_fields"] == 2)
    }

    @Test("An access token identifies its account until it expires")
    func identity() async throws {
        await fixture.grant("1//0a")
        let token = try #require(await fixture.refresh("1//0a")).accessToken

        let version2 = await fixture.ask("GET", "/oauth2/v2/userinfo", bearer: token)
        #expect(version2?.body["id"] == "s1")
        #expect(version2?.body["verified_email"] == true)
        let openID = await fixture.ask("GET", "/v1/userinfo", bearer: token)
        #expect(openID?.body["sub"] == "s1")
        #expect(openID?.body["email"] == "s1@example.com")
        for method in ["GET", "POST"] {
            let info = await fixture.ask(method, "/tokeninfo?access_token=\(token)")
            #expect(info?.body["aud"] == "c1")
            #expect(info?.body["expires_in"] == "3599")
            #expect(info?.body["exp"] == .string(String(fixture.time.now.milliseconds / 1000 + 3599)))
        }

        fixture.time.advance(by: .seconds(3599))
        #expect(await fixture.ask("GET", "/oauth2/v2/userinfo", bearer: token)?.status == 401)
        #expect(await fixture.ask("GET", "/v1/userinfo", bearer: token)?.status == 401)
        let info = await fixture.ask("GET", "/tokeninfo?access_token=\(token)")
        #expect(info?.status == 400)
        #expect(info?.error == "invalid_token")
    }

    @Test("An altered access token is refused")
    func forged() async throws {
        await fixture.grant("1//0a")
        await fixture.grant("1//0b", sub: "s2")
        let token = try #require(await fixture.refresh("1//0a")).accessToken
        for forged in [token + "x", "ya29.a01" + token.dropFirst(8), "ya29.", "", String(token.dropLast())] {
            #expect(await fixture.ask("GET", "/v1/userinfo", bearer: forged)?.status == 401)
        }
    }

    @Test("Revoking ends all grants of the user, by either token, and only once", arguments: [true, false])
    func revoke(byAccessToken: Bool) async throws {
        await fixture.grant("1//0a")
        await fixture.grant("1//0b")
        await fixture.grant("1//0c", sub: "s2")
        let access = try #require(await fixture.refresh("1//0a")).accessToken
        let form = ["token": byAccessToken ? access : "1//0a"]
        #expect(await fixture.ask("GET", "/revoke?token=1//0a")?.status == 404)
        #expect(await fixture.ask("POST", "/revoke", form: form)?.status == 200)
        let again = await fixture.ask("POST", "/revoke", form: form)
        #expect(again?.status == 400)
        #expect(again?.body["error_description"] == "Token expired or revoked")
        for dead in ["1//0a", "1//0b"] {
            let answer = await fixture.refresh(dead)
            #expect(answer?.body["error_description"] == "Token has been expired or revoked.")
        }
        #expect(await fixture.refresh("1//0c")?.status == 200)
        #expect(await fixture.ask("GET", "/v1/userinfo", bearer: access)?.status == 401)
    }
}
