import Base
import Testing

@Suite("The system's random numbers")
struct SystemRandomTests {
    @Test("are not used twice, whichever task takes them")
    func unique() async {
        let numbers = await withTaskGroup(of: [UInt64].self) { group in
            for _ in 0..<8 { group.addTask { (0..<1_000).map { _ in SystemRandom().nextBits() } } }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(numbers).count == 8_000)
    }

    @Test("are evenly distributed from 0 up to but not including 1")
    func units() {
        let units = (0..<10_000).map { _ in SystemRandom().nextUnit() }
        #expect(units.allSatisfy { (0..<1).contains($0) })
        let mean = units.reduce(0, +) / 10_000
        #expect((0.45...0.55).contains(mean))
    }
}
