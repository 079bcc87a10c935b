import Base

@testable import Crypto
@testable import GoogleOAuth
@testable import HTTPServer
@testable import Routes

/// Signed tokens and sealed values: no input may pass for something that a key holder made.
extension FuzzTarget {
    static let tokens: [FuzzTarget] = [
        FuzzTarget(name: "jwt", run: readToken),
        FuzzTarget(name: "claims", run: readClaims),
        FuzzTarget(name: "security_event", run: readSecurityEvent),
        FuzzTarget(name: "key_set", run: readKeySet),
        FuzzTarget(name: "sealed", run: openSealed),
        FuzzTarget(name: "token_form", run: readTokenForm),
        FuzzTarget(name: "basic", run: readBasicCredentials),
    ]

    private static let now = Timestamp(secondsSince1970: 1_790_000_000)
    private static let signer = made {
        try TokenSigner(secrets: [
            Secret("a secret of the tests, long enough to sign"), Secret("another one, also long enough to do so"),
        ])
    }
    /// The key of RFC 7515, appendix A.3, whose token is in the corpus.
    private static let elliptic = made {
        try PublicKey(
            x: Base64URL.decode("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU") ?? [],
            y: Base64URL.decode("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0") ?? []
        )
    }
    private static let ring = made { try KeyRing(keys: [.random(), .random()]) }

    static func made<Value>(_ body: () throws -> Value) -> Value {
        do {
            return try body()
        } catch {
            fatalError("cannot prepare the fuzz target: \(error)")
        }
    }

    private static func readToken(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        do throws(CryptoError) {
            _ = try signer.claims(of: text, at: now)
            fatalError("violated: a token that was not signed is refused")
        } catch {}
        do throws(CryptoError) {
            let token = try SignedToken(text, limit: SecurityEventReader.maximumBody)
            require(!token.verifies(with: elliptic) || token.claims["iss"] == .string("joe"), "no token is forged")
        } catch {}
    }

    /// The claims of a token with a valid signature: the input is signed by a backend that knows the secret.
    private static func readClaims(_ input: [UInt8]) {
        guard let claims = JSONValue.object(in: input) else { return }
        do throws(CryptoError) { try TokenSigner.checkTimes(of: claims, at: now) } catch { return }
        do throws(AppError) {
            let access = try AccessClaims(claims)
            require(access.userID.isUserID, "a user id is short and printable")
            require(
                claims["type"] == nil || claims["type"] == .string("access"),
                "no other token is an access token"
            )
        } catch {}
    }

    private static func readSecurityEvent(_ input: [UInt8]) {
        guard let claims = JSONValue.object(in: input) else { return }
        do throws(SecurityEventError) {
            let token = try SecurityEventToken(
                claims: claims,
                issuer: "https://accounts.google.com/",
                clientIDs: ["ours"],
                at: now
            )
            require((1...255).contains(token.id.utf8.count), "the event's id is bounded")
            require(token.events.count <= 16, "the number of events is bounded")
            require(token.issuedAt <= now + .seconds(86_400), "a token is not issued in the future")
            require(token.happenedAt.map { $0 <= token.issuedAt } ?? true, "an event precedes its token")
        } catch {}
    }

    private static func readKeySet(_ input: [UInt8]) {
        guard let document = JSONValue.object(in: input) else { return }
        guard let keys = KeySet(document) else { return }
        for key in keys.keys.values {
            require(!key.verifies(signature: input, of: input), "a random signature is not good")
        }
    }

    /// First the bytes themselves, then a valid sealed value overwritten with the bytes.
    private static func openSealed(_ input: [UInt8]) {
        let context = SealContext(owner: 7, column: "refresh_token")
        refuse(input, in: context)
        let good = made { try ring.seal(Secret("1//a-refresh-token"), for: context).bytes }
        var changed = good
        for (index, byte) in input.enumerated() where index < changed.count { changed[index] ^= byte }
        if changed != good { refuse(changed, in: context) }
    }

    private static func refuse(_ bytes: [UInt8], in context: SealContext) {
        do throws(CryptoError) {
            _ = try ring.open(try SealedSecret(bytes: bytes), for: context)
            fatalError("violated: only what was sealed can be opened")
        } catch {}
    }

    private static let service = Service(
        name: "mailer",
        credentialHash: Digest.sha256(Array("rwc_a".utf8)),
        scopes: .everything,
        users: .everything
    )

    /// The form of a request for a token.
    private static func readTokenForm(_ input: [UInt8]) {
        let type: ServerRequest.Field = ("Content-Type", "application/x-www-form-urlencoded")
        let request = request(headers: [type], body: input)
        do throws(ServiceError) {
            let form = try TokenEndpointForm(request)
            if let login = try form.login(request) {
                require(!login.name.isEmpty && !login.credential.isEmpty, "a login is complete")
            }
            let parsed = try TokenEndpointRequest(form, from: service)
            require((1...8192).contains(parsed.subject.utf8.count), "a subject is bounded")
            require(!parsed.subject.utf8.contains { $0 < 0x20 || $0 == 0x7f }, "a subject is printable")
            require(parsed.presentsToken || !parsed.subject.hasPrefix("rwh_"), "only what was sealed is a handle")
            require(parsed.demands.scopes.count <= 1024, "the number of scopes is bounded")
        } catch {
            let response = error.oauthResponse
            require([400, 401].contains(response.status), "a form is refused as such")
            require(!response.body.isEmpty, "an error has a body")
        }
    }

    private static func request(headers: [ServerRequest.Field], body: [UInt8] = []) -> ServerRequest {
        ServerRequest(
            method: "POST",
            target: RequestTarget(Array("/oauth2/token".utf8)),
            headers: headers,
            body: body,
            peerAddress: "unix",
            clientAddress: "unix",
            id: "0"
        )
    }

    /// The input is the value of the header after the scheme.
    private static func readBasicCredentials(_ input: [UInt8]) {
        let value = "Basic " + String(decoding: input, as: UTF8.self)
        let request = request(headers: [("Authorization", value)])
        guard case .present(let name, _) = BasicCredentials(of: request) else { return }
        require(name.utf8.count <= 4 * input.count, "a name is not longer than its text")
    }
}
