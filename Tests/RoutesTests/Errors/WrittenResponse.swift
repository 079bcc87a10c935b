import Testing

@testable import HTTPServer
@testable import Routes

extension ServerResponse {
    /// The status, the headers and the body of a JSON response, each on a line of its own.
    var written: String {
        #expect(headers.last(where: { $0.name == "Content-Type" })?.value == "application/json")
        return text(of: headers.filter { $0.name != "Content-Type" })
    }

    /// The same of a page, without the headers that every page has.
    var writtenAsPage: String {
        let names = headers.map(\.name)
        for header in MonitoringHandler.pageHeaders { #expect(names.contains(header.name)) }
        let common = Set(MonitoringHandler.pageHeaders.map(\.name) + ["Content-Type"])
        return text(of: headers.filter { !common.contains($0.name) })
    }

    private func text(of headers: [ServerRequest.Field]) -> String {
        let body = String(decoding: self.body, as: UTF8.self)
        let lines = ["\(status)"] + headers.map { "\($0.name): \($0.value)" } + [body]
        return lines.joined(separator: "\n").trimmingLastNewline
    }
}

extension String {
    fileprivate var trimmingLastNewline: String { hasSuffix("\n") ? String(dropLast()) : self }
}
