import Base
import Testing

@testable import RefreshWorker
@testable import Storage

@Suite("The messages of store copy")
struct StoreCopyReportTests {
    @Test(
        "A command to copy quotes the target for a shell",
        arguments: [
            ("/v/g.db", "rm -f -- /v/g.db /v/g.db-wal /v/g.db-shm /v/g.db.reserve /v/g.db-leases-*"),
            ("a b", "rm -f -- 'a b' 'a b-wal' 'a b-shm' 'a b.reserve' 'a b'-leases-*"),
            ("i';x", #"rm -f -- 'i'\'';x' 'i'\'';x-wal' 'i'\'';x-shm' 'i'\'';x.reserve' 'i'\'';x'-leases-*"#),
            ("-rf", "rm -f -- -rf -rf-wal -rf-shm -rf.reserve -rf-leases-*"),
            ("postgres://w@h:1/g", "psql postgres://w@h:1/g -c 'DROP SCHEMA refresh_worker CASCADE'"),
            ("postgres://h/g?sslmode=require", "psql 'postgres://h/g?sslmode=require' -c 'DROP SCHEMA"),
            ("postgres://h/g?schema=user", "psql postgres://h/g -c 'DROP SCHEMA \"user\" CASCADE'"),
        ]
    )
    func emptying(target: String, line: String) throws {
        let failure = CommandError(
            .differs(.grant, source: ArchiveDigest(), target: ArchiveDigest()),
            from: .file("source"),
            to: try DatabaseLocation(target)
        )
        #expect(failure.message.contains(line), "\(failure)")
    }

    @Test("the summary does not call every identifier one of a security event")
    func identifiers() {
        var summary = StoreCopy.Summary()
        summary.counts = [.identifier: 6]
        let text = summary.text(from: .file("a"), to: .file("b"))
        #expect(text.contains("6 identifiers of security events and of used or ended tokens, 0 notices"))
    }

    @Test("as JSON, the summary counts each kind of record")
    func json() throws {
        var summary = StoreCopy.Summary()
        summary.counts = [.user: 2, .grant: 3]
        summary.copiedNow = 4
        let text = written { summary.write(from: .file("a"), to: .file("b"), into: &$0) }.text
        #expect(
            text == """
                {"from":"a","to":"b","records":5,"copied_now":4,"records_by_kind":{"user":2,"grant":3,"event":0,\
                "session":0,"client_health":0,"identifier":0,"notice":0},"sha256":"\(summary.digest)"}
                """
        )
    }
}
