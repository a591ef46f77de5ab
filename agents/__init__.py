"""The agents that answer and how they are called, the judge, and the models behind them."""
