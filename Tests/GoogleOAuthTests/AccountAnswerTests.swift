import Base
import Testing

@testable import GoogleOAuth

@Suite("The answers of userinfo and tokeninfo")
struct AccountAnswerTests {
    private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(text.utf8) }

    @Test(
        "Both spellings of userinfo are read",
        arguments: [
            """
            {"id":"107","email":"ann@example.com","verified_email":true,"name":"Ann","picture":"https://p/1",\
            "hd":"example.com","locale":"en"}
            """,
            """
            {"sub":"107","email":"ann@example.com","email_verified":true,"name":"Ann","picture":"https://p/1",\
            "hd":"example.com"}
            """,
            """
            {"sub":"107","email":"ann@example.com","email_verified":"true","name":"Ann","picture":"https://p/1",\
            "hd":"example.com"}
            """,
        ]
    )
    func userInfo(text: String) throws {
        let info = try #require(UserInfo(try json(text)))
        #expect(info.googleUserID == "107")
        #expect(info.email == "ann@example.com")
        #expect(info.emailIsVerified)
        #expect(info.name == "Ann")
        #expect(info.picture == "https://p/1")
        #expect(info.hostedDomain == "example.com")
    }

    @Test(
        "Without an account there is no user info",
        arguments: [
            "{}", #"{"email":"ann@example.com"}"#, #"{"sub":7}"#, #"{"sub":""}"#, #"{"id":null}"#, "[]", "null",
        ]
    )
    func noUserInfo(text: String) throws {
        #expect(UserInfo(try json(text)) == nil)
    }

    @Test("An account's id has at most 255 bytes")
    func longID() throws {
        #expect(UserInfo(try json(#"{"sub":"\#(String(repeating: "1", count: 255))"}"#)) != nil)
        #expect(UserInfo(try json(#"{"sub":"\#(String(repeating: "1", count: 256))"}"#)) == nil)
    }

    @Test(
        "Only true, or a string true, marks an address as verified",
        arguments: [
            (#""email_verified":true"#, true), (#""email_verified":"true""#, true), (#""email_verified":false"#, false),
            (#""email_verified":"false""#, false), (#""email_verified":1"#, false),
            (#""email_verified":"TRUE""#, false),
            (#""email_verified":null"#, false), (#""verified_email":true"#, true), (#""email":"a@b""#, false),
        ]
    )
    func verified(member: String, expected: Bool) throws {
        #expect(try #require(UserInfo(try json(#"{"sub":"1",\#(member)}"#))).emailIsVerified == expected)
    }

    @Test(
        "Both spellings of tokeninfo are read, including numbers in strings",
        arguments: [
            """
            {"azp":"c","aud":"c","sub":"107","scope":"openid email","exp":"1679875401","expires_in":"3560",\
            "email":"ann@example.com","email_verified":"true","access_type":"online"}
            """,
            """
            {"issued_to":"c","audience":"c","user_id":"107","scope":"openid email","expires_in":3560,\
            "email":"ann@example.com","verified_email":true,"access_type":"offline"}
            """,
        ]
    )
    func tokenInfo(text: String) throws {
        let info = try #require(TokenInfo(try json(text)))
        #expect(info.audience == "c")
        #expect(info.authorizedParty == "c")
        #expect(info.googleUserID == "107")
        #expect(info.scope == "openid email")
        #expect(info.lifetime == .seconds(3560))
        #expect(info.emailIsVerified == true)
    }

    @Test(
        "A lifetime is limited, or unknown",
        arguments: [
            ("-5", Duration.zero), ("\"-5\"", .zero), ("99999999999", .seconds(34_560_000)), ("1e300", nil),
            ("\"soon\"", nil), ("\"\"", nil), ("null", nil), ("3560.5", nil), ("[3560]", nil),
            ("\"99999999999999999999\"", nil),
        ] as [(String, Duration?)]
    )
    func lifetime(text: String, expected: Duration?) throws {
        let info = try #require(TokenInfo(try json(#"{"aud":"c","expires_in":\#(text)}"#)))
        #expect(info.lifetime == expected)
        #expect(info.emailIsVerified == nil)
        #expect(info.googleUserID == nil)
    }

    @Test("Without an audience there is no token info", arguments: ["{}", #"{"aud":""}"#, #"{"aud":["c"]}"#])
    func noTokenInfo(text: String) throws {
        #expect(TokenInfo(try json(text)) == nil)
    }
}
