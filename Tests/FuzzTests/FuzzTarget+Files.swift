import Base
import GoogleOAuth
import HTTPServer
import Storage

@testable import Crypto
@testable import HTTPClient
@testable import Records
@testable import RefreshWorker
@testable import Routes

/// Files and settings that an operator writes.
extension FuzzTarget {
    static let files: [FuzzTarget] = [
        FuzzTarget(name: "import", run: readImport),
        FuzzTarget(name: "environment_file", run: readEnvironmentFile),
        FuzzTarget(name: "database_address", run: readDatabaseAddress),
        FuzzTarget(name: "endpoint", run: readEndpoint),
        FuzzTarget(name: "key_ring", run: readKeyRing),
        FuzzTarget(name: "services_file", run: readServicesFile),
        FuzzTarget(name: "service_account", run: readServiceAccount),
        FuzzTarget(name: "command", run: readCommand),
        FuzzTarget(name: "error_output", run: showErrorOutput),
    ]

    private static let now = Timestamp(secondsSince1970: 1_790_000_000)
    private static let clientIDs = ["1-a.apps.googleusercontent.com"]

    /// The first byte says where the input is cut in two: the chunks that a pipe delivers must not change the records.
    private static func readImport(_ input: [UInt8]) {
        guard let first = input.first else { return }
        let text = Array(input.dropFirst())
        var whole = RecordSplitter()
        let records = whole.feed(text) + whole.finish()
        let cut = text.isEmpty ? 0 : Int(first) % text.count
        var parts = RecordSplitter()
        require(
            parts.feed(text[..<cut]) + parts.feed(text[cut...]) + parts.finish() == records,
            "chunks do not change the records"
        )
        for record in records {
            do throws(InputError) {
                let grant = try ImportedGrant(reading: record, clientIDs: clientIDs, at: now)
                require((1...RecordFields.maximumTextLength).contains(grant.userID.utf8.count), "a user id is bounded")
                if let token = grant.accessToken { require(!token.secret.isEmpty, "a stored token is not empty") }
                if let token = grant.refreshToken { require(!token.isEmpty, "a stored token is not empty") }
            } catch {
                require(!error.message.isEmpty, "a refusal has a text")
            }
            for map in [UserFieldMap.unmapped, .payPulse, .comprehensionEngine] { readUser(record, by: map) }
        }
    }

    private static func readUser(_ record: RecordSplitter.Record, by map: UserFieldMap) {
        do throws(InputError) {
            let members = try record.members()
            let user = try ImportedUser(members: members, by: map, at: now)
            require((1...RecordFields.maximumTextLength).contains(user.id.utf8.count), "a user id is bounded")
            require(user.createdAt.map { $0 <= now } ?? true, "a user is not created in the future")
            let typed = members.mapValues(typed)
            let again = try ImportedUser(members: ["Item": .object(typed)].withoutDynamoDBTypes, by: map, at: now)
            require(user == again, "a row of DynamoDB means what the row means without types")
        } catch {
            require(!error.message.isEmpty, "a refusal has a text")
        }
    }

    /// A value as DynamoDB exports it.
    private static func typed(_ value: JSONValue) -> JSONValue {
        switch value {
        case .null: .object(["NULL": .bool(true)])
        case .bool: .object(["BOOL": value])
        case .number(let digits): .object(["N": .string(digits)])
        case .string: .object(["S": value])
        case .array(let values): .object(["L": .array(values.map(typed))])
        case .object(let members): .object(["M": .object(members.mapValues(typed))])
        }
    }

    private static func readEnvironmentFile(_ input: [UInt8]) {
        let file = EnvironmentFile(parsing: input)
        let lines = input.count { $0 == 0x0a || $0 == 0x0d } + 1
        for entry in file.entries {
            require(!entry.key.isEmpty && (1...lines).contains(entry.line), "an entry has a key and a line of the file")
        }
        for mistake in file.mistakes {
            require((1...lines).contains(mistake.line), "a mistake names a line of the file")
        }
    }

    private static func readDatabaseAddress(_ input: [UInt8]) {
        // libpq reads C strings.
        let text = String(decoding: input.prefix { $0 != 0 }, as: UTF8.self)
        do throws(StoreError) {
            let address = try DatabaseAddress(url: Secret(text))
            let shown = try DatabaseAddress(url: Secret(address.url))
            require(!shown.holdsPassword, "the address that is shown has no password")
            require(shown.url == address.url, "the address that is shown reads back the same")
        } catch {
            require(!error.message.isEmpty, "a refusal has a text")
        }
    }

    private static func readEndpoint(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        do throws(FormatError) {
            let endpoint = try Endpoint(text)
            require(endpoint.isSecure || endpoint.isLoopback, "plain HTTP goes to this machine only")
            require(!endpoint.host.isEmpty && !endpoint.host.contains("@"), "a host is a host")
        } catch {}
        _ = ListenAddress(text)
    }

    private static func readKeyRing(_ input: [UInt8]) {
        do throws(FileError) {
            let document = try KeyRingDocument(text: Secret(utf8: input), path: "keys")
            let again = try KeyRingDocument(text: document.text, path: "keys")
            require(again.ring.keyIDs == document.ring.keyIDs, "a ring that was written reads back the same")
        } catch {}
    }

    private static func readServicesFile(_ input: [UInt8]) {
        do throws(FormatError) {
            _ = try ServiceList(parsing: input)
        } catch {
            require(!error.description.isEmpty, "a refusal has a text")
        }
    }

    private static func readServiceAccount(_ input: [UInt8]) {
        do throws(FormatError) {
            _ = try ServiceAccount(keyFile: Secret(utf8: input))
        } catch {
            require(!error.description.isEmpty, "a refusal has a text")
        }
    }

    /// The program of a setting.
    private static func readCommand(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        guard case .success(let command) = Result(catching: { () throws(InputError) in try ExternalCommand(text) })
        else { return }
        require(!command.program.isEmpty, "a command has a program")
        let quoted = command.words.map(\.quoted).joined(separator: " ")
        guard case .success(let again) = Result(catching: { () throws(InputError) in try ExternalCommand(quoted) })
        else { fatalError("violated: words in quotes are a command") }
        require(again == command, "words in quotes stand for themselves")
    }

    /// What a program of a setting writes to standard error, which can be a key.
    private static func showErrorOutput(_ input: [UInt8]) {
        let text = ShownErrorOutput.text(of: input)
        require(text.count <= ShownErrorOutput.maximumLength, "the text is short")
        require(!text.contains(where: \.isNewline), "the text is one line")
        let runs = text.split { character in
            !(character.isASCII && (character.isLetter || character.isNumber || "+/=".contains(character)))
        }
        require(runs.allSatisfy { $0.count < 40 }, "a text as long as a key is hidden")
    }
}

extension String {
    /// The text as one word of a command.
    fileprivate var quoted: String {
        // An apostrophe ends the quotes, and stands within other ones.
        "'" + unicodeScalars.map { $0 == "'" ? #"'"'"'"# : String($0) }.joined() + "'"
    }
}
