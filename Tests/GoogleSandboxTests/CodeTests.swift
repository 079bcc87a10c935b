import Testing

@testable import Base
@testable import GoogleSandbox

@Suite("The sandbox exchanges codes of apps", .timeLimit(.minutes(10)))
struct CodeTests {
    let fixture = SandboxFixture()

    private func code(_ more: String = "") async throws -> String {
        let body = #"{"client_id":"server","client_secret":"s","sub":"s1","email":"s1@example.com"\#(more)}"#
        return try #require(await fixture.control("codes", body)?.body["code"]?.stringValue)
    }

    private func exchange(_ code: String, _ changes: [String: String?] = [:]) async throws -> SandboxFixture.Answer {
        var form = [
            "client_id": "server", "client_secret": "s", "grant_type": "authorization_code", "redirect_uri": "",
            "code": code,
        ]
        for (name, value) in changes { form[name] = value }
        return try #require(await fixture.ask("POST", "/token", form: form))
    }

    @Test("once, with the members of Google's sample response")
    func once() async throws {
        let code = try await code()
        #expect(code.hasPrefix("4/0A"))
        let answer = try await exchange(code)
        #expect(answer.status == 200)
        for member in ["access_token", "expires_in", "token_type", "scope", "refresh_token"] {
            #expect(answer.body[member] != nil)
        }
        let again = try await exchange(code)
        #expect(again.status == 400)
        #expect(again.error == "invalid_grant")
    }

    @Test("without a refresh token, as for a user who has consented before")
    func later() async throws {
        let answer = try await exchange(try await code(#","brings_refresh_token":false"#))
        #expect(answer.status == 200)
        #expect(answer.body["refresh_token"] == nil)
    }

    @Test(
        "only for its client, with the secret, and without an address",
        arguments: [
            (["client_id": "other"], "unauthorized_client"), (["client_secret": "x"], "invalid_client"),
            (["client_secret": nil], "invalid_request"),
            (["redirect_uri": "https://a.example"], "redirect_uri_mismatch"),
            (["redirect_uri": nil], "redirect_uri_mismatch"), (["code": "4/0Ax"], "invalid_grant"),
            (["code": nil], "invalid_request"),
        ] as [([String: String?], String)]
    )
    func refused(changes: [String: String?], error: String) async throws {
        let code = try await code()
        #expect(try await exchange(code, changes).error == error)
        #expect(try await exchange(code).status == 200)
    }

    @Test("and the grant's refreshes need the secret too")
    func refreshed() async throws {
        let token = try #require(try await exchange(try await code()).body["refresh_token"]?.stringValue)
        #expect(await fixture.refresh(token, client: "server")?.error == "invalid_request")
        let form = [
            "client_id": "server", "client_secret": "s", "grant_type": "refresh_token", "refresh_token": token,
        ]
        #expect(await fixture.ask("POST", "/token", form: form)?.status == 200)
        #expect(await fixture.statistics()["unexpected_fields"] == 0)
    }
}
