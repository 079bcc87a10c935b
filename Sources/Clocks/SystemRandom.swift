/// The system's random numbers.
package struct SystemRandom: RandomSource {
    package init() {}

    package func nextUnit() -> Double { Double.random(in: 0..<1) }
    package func nextBits() -> UInt64 { UInt64.random(in: .min ... .max) }
}
