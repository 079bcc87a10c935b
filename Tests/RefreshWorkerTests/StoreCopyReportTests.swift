import Testing

@testable import Store
@testable import WorkerCommands
@testable import WorkerConfiguration

@Suite("The messages of store copy")
struct StoreCopyReportTests {
    @Test(
        "A command to copy quotes the target for a shell",
        arguments: [
            ("/v/a.sqlite", "rm -f -- /v/a.sqlite /v/a.sqlite-wal /v/a.sqlite-shm /v/a.sqlite.reserve /v/a.sqlite-leases-*"),
            ("a b", "rm -f -- 'a b' 'a b-wal' 'a b-shm' 'a b.reserve' 'a b'-leases-*"),
            ("it's;x", #"rm -f -- 'it'\''s;x' 'it'\''s;x-wal' 'it'\''s;x-shm' 'it'\''s;x.reserve' 'it'\''s;x'-leases-*"#),
            ("-rf", "rm -f -- -rf -rf-wal -rf-shm -rf.reserve -rf-leases-*"),
            ("postgres://w@h:1/g", "psql postgres://w@h:1/g -c 'DROP SCHEMA refresh_worker CASCADE'"),
            ("postgres://h/g?sslmode=require", "psql 'postgres://h/g?sslmode=require' -c 'DROP SCHEMA"),
        ]
    )
    func emptying(target: String, line: String) throws {
        let failure = CommandFailure(
            .differs(.grant, source: ArchiveDigest(), target: ArchiveDigest()),
            from: .file("source"),
            to: try DatabaseLocation(target)
        )
        #expect(failure.message.contains(line), "\(failure)")
    }

    @Test("as JSON, the summary counts each kind of record")
    func json() throws {
        var summary = StoreCopy.Summary()
        summary.counts = [.user: 2, .grant: 3]
        summary.copiedNow = 4
        let text = StoreCopyReport.json(of: summary, from: .file("a"), to: .file("b"))
        #expect(
            text == """
                {"from":"a","to":"b","records":5,"copied_now":4,"records_by_kind":{"user":2,"grant":3,"event":0,\
                "session":0,"client_health":0,"security_event":0,"notice":0},"sha256":"\(summary.digest)"}
                """
        )
    }
}
