import Crypto
import Testing

@testable import GoogleOAuth
@testable import HTTPClient

@Suite("A 200 with a flaw")
struct FlawedAnswerTests {
    private static let bodies = [
        // No access token, or one that is not a valid token.
        "{}", #"{"expires_in":3599}"#, #"{"access_token":null}"#, #"{"access_token":""}"#, #"{"access_token":5}"#,
        #"{"access_token":true}"#, #"{"access_token":["a"]}"#, #"{"access_token":{"value":"a"}}"#,
        #"{"access_token":"two words"}"#, #"{"access_token":"line\nbreak"}"#, #"{"access_token":"tab\t"}"#,
        #"{"access_token":"caf\u00e9"}"#, #"{"access_token":"nul\u0000"}"#, #"{"ACCESS_TOKEN":"a"}"#,
        // An invalid lifetime.
        #"{"access_token":"a","expires_in":0}"#, #"{"access_token":"a","expires_in":-1}"#,
        #"{"access_token":"a","expires_in":-9223372036854775808}"#, #"{"access_token":"a","expires_in":"3599"}"#,
        #"{"access_token":"a","expires_in":3599.5}"#, #"{"access_token":"a","expires_in":1e400}"#,
        #"{"access_token":"a","expires_in":99999999999999999999}"#, #"{"access_token":"a","expires_in":34560001}"#,
        #"{"access_token":"a","expires_in":9223372036854775807}"#, #"{"access_token":"a","expires_in":true}"#,
        #"{"access_token":"a","expires_in":[]}"#, #"{"access_token":"a","expires_in":{}}"#,
        #"{"access_token":"a","expires_in":""}"#,
        // Other members with a wrong type or with contradicting values.
        #"{"access_token":"a","token_type":"mac"}"#, #"{"access_token":"a","token_type":1}"#,
        #"{"access_token":"a","token_type":""}"#, #"{"access_token":"a","token_type":["Bearer"]}"#,
        #"{"access_token":"a","scope":1}"#, #"{"access_token":"a","scope":["openid"]}"#,
        #"{"access_token":"a","scope":{}}"#,
        #"{"access_token":"a","refresh_token":1}"#, #"{"access_token":"a","refresh_token":["r"]}"#,
        #"{"access_token":"a","refresh_token":"two words"}"#, #"{"access_token":"a","refresh_token":false}"#,
        #"{"access_token":"a","refresh_token_expires_in":0}"#, #"{"access_token":"a","refresh_token_expires_in":-5}"#,
        #"{"access_token":"a","refresh_token_expires_in":"604799"}"#,
        #"{"access_token":"a","refresh_token_expires_in":1e30}"#,
        #"{"access_token":"a","error":"invalid_grant"}"#, #"{"access_token":"a","error":{"code":1}}"#,
        #"{"error":"invalid_grant"}"#, #"{"error":"invalid_client"}"#,
        // If members have the same name, the last one counts.
        #"{"access_token":"a","access_token":""}"#, #"{"access_token":"a","expires_in":60,"expires_in":"x"}"#,
        #"{"access_token":"a","junk":{"access_token":"b"},"expires_in":null,"scope":7}"#,
    ]

    @Test("is a temporary fault without an access token", arguments: bodies)
    func flawed(body: String) {
        let verdict = read(200, body).verdict
        #expect(verdict.kind == .flawed)
        #expect(verdict.code == "flawed_answer")
        #expect(verdict.rotated == nil)
    }

    @Test("still gives a well-formed refresh token", arguments: bodies)
    func flawedWithRotation(body: String) throws {
        // The member is last, so that it is the one that counts.
        let member = #""refresh_token":"1//successor"}"#
        let separator = body == "{}" ? "" : ","
        let verdict = read(200, body.dropLast() + separator + member).verdict
        let hadFaultyRefreshToken = body.contains(#""refresh_token":"#)
        #expect(verdict.kind == (hadFaultyRefreshToken ? .granted : .flawed))
        #expect(verdict.rotated == "1//successor")
    }

    @Test(
        "that is not a JSON object does not come from Google",
        arguments: [
            "", " ", "<!DOCTYPE html><p>Sign in to the Wi-Fi", "OK", "null", "true", "3599", "\"a\"", "[]",
            #"[{"access_token":"a"}]"#, #"{"access_token":"a""#, #"{"access_token":"a"}}"#, #"{"access_token":"a",}"#,
            #"{access_token:"a"}"#, #"{'access_token':'a'}"#, #"{"access_token":"a"} {"access_token":"b"}"#,
            #")]}'{"access_token":"a"}"#, " \u{FEFF}{\"access_token\":\"a\"}", #"{"access_token":"\ud800"}"#,
            #"{"access_token":"a","expires_in":03}"#, #"{"access_token":"a","expires_in":+3}"#,
            #"{"access_token":"a","expires_in":NaN}"#, "access_token=a&expires_in=3599",
        ]
    )
    func notJSON(body: String) {
        let verdict = read(200, body).verdict
        #expect(verdict.kind == .notJSON)
        #expect(verdict.code == "not_json")
    }

    @Test("A truncated good answer grants nothing, but its refresh token is kept if complete")
    func truncated() {
        let start = #"{"access_token":"ya29.x","expires_in":3599,"refresh_token":"1//next""#
        let good = start + #","token_type":"Bearer"}"#
        #expect(read(200, good).verdict.kind == .granted)
        for length in 0..<good.utf8.count {
            let verdict = read(200, String(good.prefix(length))).verdict
            let isKept = length >= start.utf8.count
            #expect(verdict.kind == (isKept ? .flawed : .notJSON), "the first \(length) bytes")
            #expect(verdict.rotated == (isKept ? "1//next" : nil), "the first \(length) bytes")
        }
    }

    @Test(
        "A refresh token is kept if text follows the object, or the rest of the object has an error",
        arguments: [
            "} junk", "}{}", "}\0", #"}{"refresh_token":"other"}"#, "}</html>", #","scope":"\ud800"}"#, ",x:1}",
        ]
    )
    func trailingText(rest: String) {
        let verdict = read(200, #"{"access_token":"a","refresh_token":"1//next""# + rest).verdict
        #expect(verdict.kind == .flawed)
        #expect(verdict.rotated == "1//next")
    }

    @Test("A refresh token in an answer with another good status is kept", arguments: [201, 203, 206])
    func otherSuccess(status: Int) {
        let verdict = read(status, #"{"access_token":"a","expires_in":3599,"refresh_token":"1//next"}"#).verdict
        #expect(verdict.kind == .flawed)
        #expect(verdict.rotated == "1//next")
    }

    @Test("A byte-order mark before the answer is ignored")
    func byteOrderMark() {
        let body = "\u{FEFF}" + #"{"access_token":"a","expires_in":3599,"refresh_token":"1//next"}"#
        let verdict = read(200, body).verdict
        #expect(verdict.kind == .granted)
        #expect(verdict.rotated == "1//next")
        #expect(read(200, String(body.dropLast())).verdict.rotated == "1//next")
        #expect(read(400, "\u{FEFF}" + #"{"error":"invalid_grant"}"#).verdict.kind == .invalidGrant)
    }

    @Test(
        "A refresh token is kept beside a member that cannot be read",
        arguments: [
            String(repeating: "[", count: 200) + String(repeating: "]", count: 200),
            String(repeating: #"{"refresh_token":"#, count: 200) + #""inner""# + String(repeating: "}", count: 200),
            #""\ud800""#, "NaN",
        ]
    )
    func unreadableMember(value: String) {
        let verdict = read(200, #"{"access_token":"a","x":\#(value),"refresh_token":"1//next"}"#).verdict
        #expect(verdict.kind == .flawed)
        #expect(verdict.rotated == "1//next")
        // Only a member of the answer itself is its refresh token.
        #expect(read(200, #"{"access_token":"a","x":\#(value)}"#).verdict.kind == .notJSON)
    }

    static let errorStatuses = [302, 400, 401, 403, 404, 429, 500, 502, 503]

    @Test("New tokens with the status of an error are kept", arguments: errorStatuses)
    func tokensWithErrorStatus(status: Int) {
        let tokens = #""access_token":"ya29.x","expires_in":3599,"refresh_token":"1//next""#
        for body in ["{\(tokens)}", "{\(tokens)", #"{"error":"invalid_grant",\#(tokens)}"#] {
            let verdict = read(status, body).verdict
            #expect(verdict.kind == .flawed, "\(status) \(body)")
            #expect(verdict.rotated == "1//next", "\(status) \(body)")
        }
    }

    @Test("A text that is not a new refresh token changes nothing about an error", arguments: errorStatuses)
    func errorsWithoutTokens(status: Int) {
        let error = #""error":"invalid_grant""#
        let expected = read(status, "{\(error)}").verdict
        #expect(expected.kind != .flawed)
        for members in [
            #""access_token":"ya29.x""#, #""refresh_token":"***""#, #""refresh_token":"\#(sentToken)""#,
            #""access_token":"ya29.x","refresh_token":"\#(sentToken)""#, #""access_token":"","refresh_token":"***""#,
            #""access_token":"two words","refresh_token":"***""#, #""access_token":"a","refresh_token":"is required""#,
            #""tokens":{"access_token":"a","refresh_token":"1//next"}"#,
        ] {
            let verdict = read(status, "{\(error),\(members)}").verdict
            #expect(verdict.kind == expected.kind && verdict.code == expected.code, "\(status) \(members)")
        }
    }

    @Test("A refresh token in a partial answer is kept; any other partial answer counts as no answer")
    func partial() {
        let failure = { (status: Int, body: String) in
            HTTPError(
                kind: .receiveFailed,
                outcomeUnknown: true,
                message: "cut",
                partialResponse: response(status, body)
            )
        }
        let read = { (status: Int, body: String) in
            ParsedRefreshResponse.reading(.unread(.failure(failure(status, body))), sent: [Secret(sentToken)]).verdict
        }
        let kept = read(200, #"{"access_token":"a","expires_in":3599,"refresh_token":"1//next"}"#)
        #expect(kept.kind == .flawed)
        #expect(kept.rotated == "1//next")
        #expect(read(200, #"{"access_token":"a","expires_in":3599}"#).kind == .noAnswer)
        #expect(read(200, #"{"refresh_token":"two words"}"#).kind == .noAnswer)
        #expect(read(400, #"{"error":"invalid_grant"}"#).kind == .noAnswer)
        #expect(read(500, #"{"refresh_token":"1//next"}"#).kind == .noAnswer)
        #expect(read(500, #"{"access_token":"a","refresh_token":"1//next","scope"#).rotated == "1//next")
        #expect(read(200, "").kind == .noAnswer)
    }

    @Test("Bytes that are not text are not JSON")
    func notUTF8() {
        let body = Array(#"{"access_token":""#.utf8) + [0xff, 0xfe] + Array(#""}"#.utf8)
        let answer = ParsedRefreshResponse.reading(response(200, body), sent: [Secret(sentToken)])
        #expect(answer.verdict.kind == .notJSON)
    }

    @Test("64 KiB of arbitrary bytes are read and rejected")
    func large() {
        let size = 65_536
        for body in [
            String(repeating: "{", count: size), String(repeating: "[", count: size),
            String(repeating: "\"", count: size), String(repeating: "9", count: size),
            String(repeating: "{\"a\":", count: size / 5), String(repeating: "<p>", count: size / 3),
        ] {
            #expect(read(200, body).verdict.kind == .notJSON)
            #expect(read(400, body).verdict.kind == .endpointFault)
        }
        let longToken = #"{"access_token":"\#(String(repeating: "a", count: size - 20))"}"#
        #expect(read(200, longToken).verdict.kind == .flawed)
        let longRefreshToken =
            #"{"access_token":"a","refresh_token":"\#(String(repeating: "r", count: 16_385))"}"#
        #expect(read(200, longRefreshToken).verdict.kind == .flawed)
        #expect(read(200, longRefreshToken).verdict.rotated == nil)
        let longScope = #"{"access_token":"a","scope":"\#(String(repeating: "s", count: 16_385))"}"#
        #expect(read(200, longScope).verdict.kind == .flawed)
    }

    @Test(
        "Missing and null members get the defaults",
        arguments: ["", #","expires_in":null,"token_type":null,"scope":null"#]
    )
    func defaults(members: String) throws {
        let body = #"{"access_token":"a","refresh_token":null,"refresh_token_expires_in":null\#(members)}"#
        let tokens = try #require(read(200, body).verdict.tokens)
        #expect(tokens.lifetime == .seconds(3600))
        #expect(tokens.type == "Bearer")
        #expect(tokens.scope == nil)
        #expect(tokens.rotated == nil)
        #expect(tokens.refreshTokenLifetime == nil)
    }

    @Test(
        "The limits of accepted values",
        arguments: [
            (#""expires_in":1"#, Duration.seconds(1)), (#""expires_in":34560000"#, .seconds(34_560_000)),
            (#""expires_in":3599.0"#, .seconds(3599)), (#""expires_in":36e2"#, .seconds(3600)),
            (#""expires_in":3599,"token_type":"bearer""#, .seconds(3599)),
            (#""expires_in":3599,"token_type":"BEARER""#, .seconds(3599)),
            (#""expires_in":3599,"refresh_token":"""#, .seconds(3599)),
        ]
    )
    func bounds(members: String, lifetime: Duration) throws {
        let tokens = try #require(read(200, #"{"access_token":"a",\#(members)}"#).verdict.tokens)
        #expect(tokens.lifetime == lifetime)
        #expect(tokens.type == "Bearer")
        #expect(tokens.rotated == nil)
    }

    @Test("A long token is accepted")
    func longestToken() throws {
        let token = String(repeating: "t", count: 16_384)
        let tokens = try #require(
            read(200, #"{"access_token":"\#(token)","refresh_token":"\#(token)"}"#).verdict.tokens
        )
        #expect(tokens.accessToken.count == 16_384)
        #expect(tokens.rotated?.count == 16_384)
    }
}
