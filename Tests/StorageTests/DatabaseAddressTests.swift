import Crypto
import Testing

@testable import Storage

@Suite("The error for a wrong database URL")
struct DatabaseAddressTests {
    @Test(
        "The password never shows, even if the URL cannot be read",
        arguments: [
            "postgres://user:hunter2@host:5433/base", "host=h dbname=base user=user password=hunter2",
            "postgres://user:hunter2@[host/base", "postgres://user:hun%zzter2@host/base", "host=h hunter2",
            "host=h password='hunter2", "postgres://host/base?hunter2",
            "postgres://host/base?password=hunter2&x=hunter2",
        ]
    )
    func noPassword(url: String) {
        let shown: String
        do throws(StoreError) {
            shown = try DatabaseAddress(url: Secret(url)).description
        } catch {
            #expect(error.code == .cannotOpen)
            shown = error.message
        }
        #expect(!shown.contains("hunter2") && !shown.contains("ter2"))
    }

    @Test(
        "A password that is not percent-encoded does not show in any part of the message",
        arguments: [
            "postgres://user:hun/ter2@127.0.0.1:1/base", "postgres://user:12/ter2@127.0.0.1:1/base",
            "postgres://user:hun@ter2@127.0.0.1:1/base", "postgres://user:hun\"ter2%zz@127.0.0.1:1/base",
            "postgres://user:hun/ter2", "postgres://host:1,host:hun/base",
            "postgres://host:0/base", "postgres://host:65536/base", "postgres://host/base?hostaddr=hun@ter2",
            "postgres://host/base?port=hun", "host=h dbname=\"hun\"\"ter2\" \"hun\"",
        ]
    )
    func mistyped(url: String) {
        #expect {
            _ = try DatabaseAddress(url: Secret(url))
        } throws: { error in
            guard let error = error as? StoreError, error.code == .cannotOpen, !error.mayPass else { return false }
            return error.message.contains("percent-encoded") && !error.message.contains("hun")
                && !error.message.contains("ter2") && !error.message.contains("65536")
        }
    }

    @Test(
        "A correct URL is parsed as intended",
        arguments: [
            "postgres://us%40er:hun%2Fter2@a:1,b:65535/base", "postgres://a,b:5432/base", "postgres://us@[::1]:1/base",
            "postgres:///base?host=/run/pg&port=5433", "postgres://user:hun#ter2@a/base",
            "postgres://user:hun?ter2@a:1/base",
        ]
    )
    func wellTyped(url: String) throws {
        #expect(try !DatabaseAddress(url: Secret(url)).description.contains("ter2"))
    }

    @Test(
        "The URL names the schema, wherever it stands",
        arguments: [
            ("postgres://db/base?schema=grants_17", "postgres://db/base"),
            (
                "postgresql://u:p?schema=x&ss@db/base?schema=grants_17&sslmode=require",
                "postgres://u@db/base?sslmode=require"
            ),
            ("postgres:///base?host=/run/pg&schema=grants_17&port=5433", "postgres:///base?host=/run/pg&port=5433"),
            ("postgres://?schema=grants_17", "postgres:///"),
        ]
    )
    func schema(url: String, urlForPostgres: String) throws {
        let address = try DatabaseAddress(url: Secret(url))
        #expect(address.schema.text == "grants_17" && address.urlForPostgres == urlForPostgres)
        #expect(try DatabaseAddress(url: Secret(address.url)).url == address.url)
        #expect(address.description.hasPrefix("the schema grants_17 of the database "))
        let other = try DatabaseAddress(url: Secret(url.replacing("grants_17", with: "grants_18")))
        #expect(address != other && address.hosts.allSatisfy { $0.schema == address.schema })
    }

    @Test("Without a schema in the URL, and with the standard one, the address is as ever")
    func standardSchema() throws {
        for url in ["postgres://db/base", "postgres://db/base?schema=refresh_worker"] {
            let address = try DatabaseAddress(url: Secret(url))
            #expect(address.schema == .standard && address.url == "postgres://db/base")
            #expect(address.description == "the database base on db")
        }
    }

    @Test(
        "A schema's name that is not allowed is refused, with the rule",
        arguments: [
            "", "Grants", "1grants", "pg_grants", "gränts", "a-b", "a.b", "a\"b", "a%20b", "a b",
            String(repeating: "a", count: 64),
        ]
    )
    func wrongSchema(name: String) throws {
        let error = #expect(throws: StoreError.self) {
            try DatabaseAddress(url: Secret("postgres://db/base?sslmode=require&schema=\(name)"))
        }
        let rule = "1 to 63 lower-case letters, digits and _, not beginning with a digit or pg_"
        #expect(error?.code == .cannotOpen && error?.message.contains(rule) == true)
        #expect(throws: StoreError.self) { try DatabaseAddress(url: Secret("postgres://db/base?schema=a&schema=b")) }
    }

    @Test("The description names the database and the host")
    func description() throws {
        let address = try DatabaseAddress(url: Secret("postgres://user:secret@db.example:5433/base"))
        #expect(address.description == "the database base on db.example port 5433 as user")
    }
}
