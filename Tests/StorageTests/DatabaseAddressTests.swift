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

    @Test("The description names the database and the host")
    func description() throws {
        let address = try DatabaseAddress(url: Secret("postgres://user:secret@db.example:5433/base"))
        #expect(address.description == "the database base on db.example port 5433 as user")
    }
}
