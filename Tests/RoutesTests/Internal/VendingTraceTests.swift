import GoogleOAuth
import HTTPServer
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Telemetry

@Suite("The trace of a request for a token", .timeLimit(.minutes(10)))
struct VendingTraceTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let parent = "00f067aa0ba902b7"

    private func context(flags: String = "01") -> TraceContext? {
        TraceContext(traceparent: "00-\(Self.trace)-\(Self.parent)-\(flags)")
    }

    private func outcome(_ span: Span) -> String? {
        span.attributes.first { $0.name == "refresh_worker.outcome" }?.value
    }

    @Test("has a span of the vend, and one of the refresh that it waited for below it")
    func refreshed() async throws {
        let fixture = try VendingFixture()
        let id = try await fixture.add(accessToken: nil)
        await TraceContext.$current.withValue(context()) { _ = await fixture.send() }
        let spans = fixture.spans.take(atMost: 10)
        #expect(spans.map(\.name) == ["refresh", "vend"], "the inner one ends first")
        let (refresh, vend) = (try #require(spans.first), try #require(spans.last))
        #expect(spans.allSatisfy { $0.traceID.text == Self.trace })
        #expect(vend.parentID.text == Self.parent)
        #expect(refresh.parentID == vend.id && refresh.id != vend.id)
        #expect(outcome(vend) == "refreshed" && outcome(refresh) == "refreshed")
        #expect(!vend.hasFailed && !refresh.hasFailed)
        for span in spans {
            #expect(span.attributes.contains(Span.Attribute("refresh_worker.grant", id.description)))
        }
        #expect(vend.attributes.contains(Span.Attribute("refresh_worker.service", "full")))
        #expect(fixture.audit.vends.map { $0["trace_id"]?.string } == [Self.trace])
    }

    @Test("has a span of the vend alone if the stored token is served, also at once on the connection's thread")
    func served() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        await TraceContext.$current.withValue(context()) { _ = await fixture.send() }
        try await fixture.makeImmediatelyReadable()
        TraceContext.$current.withValue(context()) { #expect(fixture.sendImmediate()?.token == "stored") }
        let spans = fixture.spans.take(atMost: 10)
        #expect(spans.map(\.name) == ["vend", "vend"])
        #expect(spans.map(outcome) == ["served", "served"])
        #expect(fixture.audit.vends.map { $0["trace_id"]?.string } == [Self.trace, Self.trace])
    }

    @Test("has a failed span if no token is vended")
    func refused() async throws {
        let fixture = try VendingFixture()
        await TraceContext.$current.withValue(context()) { _ = await fixture.send() }
        let span = try #require(fixture.spans.take(atMost: 10).first)
        #expect(span.hasFailed && outcome(span) == "not_found")
    }

    @Test("has a failed span of the refresh while Google cannot be reached")
    func unreachable() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(accessToken: nil)
        fixture.endpoint.setFailure(.noAnswer(code: "timeout"))
        await TraceContext.$current.withValue(context()) { _ = await fixture.send() }
        let spans = fixture.spans.take(atMost: 10)
        #expect(spans.map(\.hasFailed) == [true, true])
        #expect(spans.map(outcome) == ["timeout", "unavailable"])
    }

    @Test("has no span if the caller does not record it, and is in the audit all the same")
    func unsampled() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        await TraceContext.$current.withValue(context(flags: "00")) { _ = await fixture.send() }
        #expect(fixture.spans.take(atMost: 10).isEmpty)
        #expect(fixture.audit.vends.map { $0["trace_id"]?.string } == [Self.trace])
    }

    @Test("is absent without a header")
    func absent() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        _ = await fixture.send()
        #expect(fixture.spans.take(atMost: 10).isEmpty)
        #expect(fixture.audit.vends.map { $0["trace_id"] } == [nil])
    }

    @Test("comes from one valid header, whose name has any case", arguments: ["traceparent", "Traceparent"])
    func header(name: String) {
        let value = "00-\(Self.trace)-\(Self.parent)-01"
        let request = { (headers: [ServerRequest.Field]) in
            ServerRequest(method: "GET", path: "/", headers: headers).traceContext
        }
        #expect(request([(name, value)]) == context())
        #expect(request([(name, value), (name, value)]) == nil, "two could contradict each other")
        #expect(request([(name, "nonsense")]) == nil)
        #expect(request([]) == nil)
    }
}
